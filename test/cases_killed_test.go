package test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/worker/apidouble"
	"runpodctl-worker/test/proctree"
)

// Nobody speaks for the jobs of a worker that was killed, so that the platform can give them to others.
func TestKilledWorkerIsSilent(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond
	g := newGates(t)
	w := runWorker(t, apidouble.New(t), "gate.py", []string{"RUNPOD_PING_INTERVAL=100"})
	w.Offer(g.job("j1"))
	g.awaitStarted(1)
	below := proctree.Descendants(w.cmd.Process.Pid)
	require.NotEmpty(t, below)
	w.signal(t, syscall.SIGKILL)
	<-w.gone
	for _, pid := range below {
		eventually(t, func() bool { return !proc.Alive(pid) }, "process %d of the program goes on", pid)
	}
	time.Sleep(interval) // for what was on its way
	pings := len(w.Calls(apidouble.Ping))
	time.Sleep(10 * interval)
	require.Len(t, w.Calls(apidouble.Ping), pings)
	require.Empty(t, w.results("j1"))
}
