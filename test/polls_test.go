package test

import (
	"fmt"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// A thousand calls of workers that wait for news take up little.
func TestIdlePollsTakeLittleMemory(t *testing.T) {
	t.Parallel()
	const workers, bound = 500, 50_000_000
	server := serve(t, "--no-worker", "--take-hold", "5m", "--stop-hold", "5m")
	before := residentMemory(t, server.cmd.Process.Pid)
	for w := range workers {
		server.hold(fmt.Sprintf("/job-stop/w%d", w))
	}
	eventually(t, func() bool { return server.health().Workers["initializing"] == workers }, "not all job-stops have arrived")
	for w := range workers {
		server.hold(fmt.Sprintf("/job-take/w%d?job_in_progress=0", w))
	}
	eventually(t, func() bool { return server.health().Workers["idle"] == workers }, "not all job-takes have arrived")
	added := residentMemory(t, server.cmd.Process.Pid) - before
	t.Logf("%d idle polls added %.1f MB to %.1f", 2*workers, float64(added)/1e6, float64(before)/1e6)
	require.LessOrEqual(t, added, int64(bound))
}

// hold sends a request and leaves its answer unread until the end of the test.
func (e endpoint) hold(path string) {
	e.t.Helper()
	u, err := url.Parse(e.base)
	require.NoError(e.t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(e.t, err)
	e.t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s/local%s HTTP/1.1\r\nHost: %s\r\n\r\n", u.Path, path, u.Host)
	require.NoError(e.t, err)
}
