package test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// SR-01: a signal lets the running job end, reports it, and only then ends the worker.
func TestSR01SignalWhileAJobRuns(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		sig  syscall.Signal
		door string
	}{
		"SIGTERM":            {syscall.SIGTERM, "shim"},
		"SIGINT":             {syscall.SIGINT, "shim"},
		"behind the gateway": {syscall.SIGTERM, "gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			w := runThrough(t, doors[row.door], []string{"RUNPOD_PING_INTERVAL=1000"}, "gate.py")
			w.Offer(g.job("j1"))
			g.awaitStarted(1)
			takes := len(w.Calls(apidouble.Take))
			w.signal(t, row.sig)

			pings := len(w.Calls(apidouble.Ping))
			eventually(t, func() bool { return len(w.Calls(apidouble.Ping)) >= pings+2 }, "no ping while draining")
			require.Equal(t, "j1", w.Calls(apidouble.Ping)[pings+1].Query.Get("job_id"))
			g.open("j1")
			require.Equal(t, `"j1"`, string(w.result(t, "j1").Output))
			require.Zero(t, w.wait(t), w.stderr)
			require.Less(t, w.end.Sub(w.results("j1")[0].At), soon)
			require.Len(t, w.Calls(apidouble.Take), takes)
		})
	}
}

// SR-02: a job that slips in on the open take of a worker that was told to stop is run all the same.
func TestSR02JobSlipsInWhileStopping(t *testing.T) {
	t.Parallel()
	for door, flags := range doors {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, flags, nil, "sync.py")
			w.awaitTake(t)
			w.signal(t, syscall.SIGTERM)
			time.Sleep(200 * time.Millisecond) // less than the linger, in which the platform may still hand over
			w.Offer(`{"id":"j1","input":{"items":["late"]}}`, `{"id":"j2","input":{"items":["too late"]}}`)
			require.JSONEq(t, `{"items":["late"]}`, string(w.result(t, "j1").Output))
			require.Zero(t, w.wait(t), w.stderr)
			require.Len(t, w.Calls(apidouble.Take), 1)
			require.Empty(t, w.results("j2"))
		})
	}
}

// SR-04: an idle worker does not wait out its open take.
func TestSR04IdleWorkerStopsAtOnce(t *testing.T) {
	t.Parallel()
	for door, flags := range doors {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, flags, nil, "sync.py") // which holds a take for 20 s
			w.awaitTake(t)
			told := time.Now()
			w.signal(t, syscall.SIGTERM)
			require.Zero(t, w.wait(t), w.stderr)
			require.Less(t, w.end.Sub(told), soon) // alone, the official worker needs as long as its polls are held
		})
	}
}

// A server that is told to stop answers those who wait for a job that runs.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	server := serveHandler(t, "gate.py")
	type answer struct {
		job
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		j, err := server.tryRunSync(g.input("g"))
		answers <- answer{j, err}
	}()
	g.awaitStarted(1)
	server.signal(t, syscall.SIGINT)
	g.open("g")
	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, "COMPLETED", got.Status)
	require.Zero(t, server.wait(t), server.stderr)
}
