package test

import (
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
	"runpodctl-worker/test/proctree"
)

// A container that is frozen and goes on later: its connections are gone, no time limit has gone on, and the platform hears
// from it at once.
func TestRunOfAFrozenContainer(t *testing.T) {
	t.Parallel()
	const frozen = 10 * time.Second
	d, g := apidouble.New(t), newGates(t)
	front := httptest.NewServer(d) // whose connections can be cut
	t.Cleanup(front.Close)
	d.URL = front.URL
	// Neither a heartbeat nor the answer to a take would be due for long, and the job is over its limit if the freeze counts.
	w := runWorker(t, d, "gate.py", []string{"RUNPOD_PING_INTERVAL=600000"}, "--concurrency", "2", "--job-timeout", "9s")
	w.Offer(g.job("j1"))
	g.awaitStarted(1)
	eventually(t, func() bool { return len(w.Calls(apidouble.Ping)) > 0 }, "no heartbeat")

	tree := append(proctree.Descendants(w.cmd.Process.Pid), w.cmd.Process.Pid)
	for _, pid := range tree {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	front.CloseClientConnections()
	time.Sleep(frozen)
	pings, takes, stops := len(w.Calls(apidouble.Ping)), len(w.Calls(apidouble.Take)), len(w.Calls(apidouble.Stop))
	for _, pid := range tree {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
	}

	eventually(t, func() bool {
		return len(w.Calls(apidouble.Ping)) > pings && len(w.Calls(apidouble.Take)) > takes && len(w.Calls(apidouble.Stop)) > stops
	}, "the platform does not hear from it")
	require.Equal(t, "j1", w.Calls(apidouble.Ping)[pings].Query.Get("job_id"))
	w.Offer(g.job("j2"))
	g.open("j1")
	g.open("j2")
	require.Equal(t, `"j1"`, string(w.result(t, "j1").Output))
	require.Equal(t, `"j2"`, string(w.result(t, "j2").Output))
	require.Equal(t, 2, g.started())
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
}
