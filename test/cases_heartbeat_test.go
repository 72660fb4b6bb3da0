package test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// HB-01: a handler that burns every core and floods stdout does not stop the heartbeat.
func TestHB01HeartbeatWhileBusy(t *testing.T) {
	const interval, seconds = time.Second, 6
	w := runWorker(t, apidouble.New(t), "spin.py", []string{"GOMAXPROCS=1", "RUNPOD_PING_INTERVAL=1000"})
	w.Offer(`{"id":"j1","input":{"seconds":` + strconv.Itoa(seconds) + `}}`)
	w.result(t, "j1")

	pings := w.Calls(apidouble.Ping)
	require.GreaterOrEqual(t, len(pings), seconds/2)
	for i, ping := range pings[1:] {
		require.Less(t, ping.At.Sub(pings[i].At), 3*interval, "ping %d", i+1)
	}
}

// HB-02: a ping names the jobs that run now, and has no empty list when none does.
func TestHB02HeartbeatNamesTheJobs(t *testing.T) {
	t.Parallel()
	const interval = time.Second // the shortest that the variable, read in whole seconds by the SDK, can say
	d, g := apidouble.New(t), newGates(t)
	w := runWorker(t, d, "gate.py", []string{"RUNPOD_PING_INTERVAL=1000"}, "--concurrency", "2")

	awaitPing := func(lists ...string) {
		t.Helper()
		from := len(w.Calls(apidouble.Ping))
		eventually(t, func() bool {
			for _, ping := range w.Calls(apidouble.Ping)[from:] {
				for _, list := range lists {
					if got, named := ping.Query["job_id"]; named && got[0] == list || !named && list == "" {
						return true
					}
				}
			}
			return false
		}, "no ping names %q", lists)
	}

	awaitPing("")
	w.Offer(g.job("A"))
	awaitPing("A")
	w.Offer(g.job("B"))
	awaitPing("A,B", "B,A")
	g.open("A")
	w.result(t, "A")
	settled := time.Now()
	awaitPing("B")
	g.open("B")
	w.result(t, "B")
	awaitPing("")

	for _, ping := range w.Calls(apidouble.Ping) {
		jobs, named := ping.Query["job_id"]
		if named {
			require.NotEmpty(t, jobs[0])
		}
		if ping.At.After(settled.Add(interval)) {
			require.NotContains(t, ping.Query.Get("job_id"), "A")
		}
	}
}
