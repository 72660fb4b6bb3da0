package test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// 500 jobs from 50 clients at once, every second of which hangs up without waiting for its answer: each kept
// call is answered, and each job that was accepted runs exactly once.
func TestManyClientsHangUp(t *testing.T) {
	t.Parallel()
	const clients, each = 50, 10
	server := serveHandler(t, "count.py", "--concurrency", "16", "--log-level", "warn")
	starts := filepath.Join(t.TempDir(), "starts")
	input := func(tag string) string {
		return `{"file":` + strconv.Quote(starts) + `,"tag":"` + tag + `"}`
	}

	var all sync.WaitGroup
	answers := make([]job, clients*each/2)
	errs := make([]error, clients*each)
	for c := range clients {
		all.Go(func() {
			for i := range each {
				n, tag := c*each+i, fmt.Sprintf("%d-%d", c, i)
				if i%2 == 0 {
					answers[n/2], errs[n] = server.tryRunSync(input(tag))
				} else {
					errs[n] = server.hangUp(input(tag))
				}
			}
		})
	}
	all.Wait()

	require.True(t, server.alive(), server.stderr)
	for _, err := range errs {
		require.NoError(t, err)
	}
	for _, answer := range answers {
		require.Equal(t, "COMPLETED", answer.Status, answer.Error)
	}
	eventually(t, func() bool {
		h, err := server.tryHealth()
		return err == nil && h.Jobs.InQueue+h.Jobs.InProgress == 0
	}, "the queue does not empty")

	raw, err := os.ReadFile(starts)
	require.NoError(t, err)
	tags := strings.Fields(string(raw))
	require.Len(t, tags, server.health().Jobs.Completed, "handler starts and accepted jobs")
	started := map[string]int{}
	for _, tag := range tags {
		started[tag]++
		require.Equal(t, 1, started[tag], tag)
	}
	for _, answer := range answers {
		require.Equal(t, 1, started[decode[string](t, answer.Output)])
	}
}

// hangUp sends a whole request and breaks the connection.
func (e endpoint) hangUp(input string) error {
	u, err := url.Parse(e.base)
	if err != nil {
		return err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	body := `{"input":` + input + `}`
	_, err = fmt.Fprintf(conn, "POST %s/local/runsync HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", u.Path, u.Host, len(body), body)
	return err
}
