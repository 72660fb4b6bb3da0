package program_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker"
	"runpodctl-worker/internal/worker/apidouble"
)

// chain is a platform, a worker, and a program with the official SDK behind the gateway.
type chain struct {
	*apidouble.API
	drain  context.CancelFunc
	over   chan struct{}
	reason worker.Reason
	err    error
	out    *output
}

func startChain(t *testing.T, text string, concurrency int) *chain {
	t.Helper()
	platform := apidouble.New(t)
	urls := platform.Templates()
	o, out := options(t, program.Options{
		Args: []string{installed(t), "-u", write(t, text)}, NoShim: true, WorkerID: "w-1",
		Env: append(os.Environ(), "HOME=/nonexistent", "RUNPOD_AI_API_KEY="+platformKey, "RUNPOD_WEBHOOK_GET_JOB="+urls.GetJob,
			"RUNPOD_WEBHOOK_POST_OUTPUT="+urls.PostOutput, "RUNPOD_WEBHOOK_POST_STREAM="+urls.PostStream),
	})
	api := client.New(client.Config{URLs: urls, WorkerID: "w-1", Key: platformKey, Concurrency: concurrency})
	w := worker.New(worker.Config{
		Concurrency: concurrency, ReadyTimeout: patience, Log: slog.New(slog.NewTextHandler(out, nil)),
	}, func() worker.Handler { return program.New(o) }, api)
	fetch, drain := context.WithCancel(context.Background())
	c := &chain{API: platform, drain: drain, over: make(chan struct{}), out: out}
	go func() {
		defer close(c.over)
		c.reason, c.err = w.Run(fetch, context.Background())
	}()
	t.Cleanup(func() {
		drain()
		<-c.over
		api.Close()
	})
	return c
}

func (c *chain) results(t *testing.T, n int) []apidouble.Call {
	t.Helper()
	require.Eventually(t, func() bool { return len(c.Calls(apidouble.Done)) == n }, patience, 10*time.Millisecond)
	return c.Calls(apidouble.Done)
}

// gated works on a job until the file named by its id is there.
const gated = `
import asyncio, os, runpod
os.chdir(os.path.dirname(os.path.abspath(__file__)))
async def handler(job):
    open("began-" + job["id"], "w").close()
    while not os.path.exists(job["id"]): await asyncio.sleep(0.02)
    return job["id"]
`

// The worker takes as many jobs as the program works at, whatever it was told itself.
func TestChainFollowsTheProgram(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		config   string
		told, at int
	}{
		{"one at a time", `{"handler": handler}`, 8, 1},
		{"three at a time", `{"handler": handler, "concurrency_modifier": lambda now: 3}`, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			jobs := tt.at + 3
			dir := t.TempDir()
			c := startChain(t, "import os\n__file__ = '"+filepath.Join(dir, "h.py")+"'\n"+gated+"runpod.serverless.start("+tt.config+")", tt.told)
			for n := range jobs {
				c.Offer(apidouble.Job("j" + strconv.Itoa(n)))
			}
			began := func() int {
				names, err := filepath.Glob(filepath.Join(dir, "began-*"))
				require.NoError(t, err)
				return len(names)
			}
			require.Eventually(t, func() bool { return began() == tt.at }, patience, 10*time.Millisecond, "%s", c.out)
			require.GreaterOrEqual(t, c.Waiting(), jobs-tt.at-1, "no more are taken than one that waits")
			for n := range jobs {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "j"+strconv.Itoa(n)), nil, 0o600))
			}
			c.results(t, jobs)
			c.drain()
			<-c.over
			require.NoError(t, c.err)
			require.Equal(t, worker.Drained, c.reason)
		})
	}
}

// The program hears of the end only when its last job is settled, and does not hold up the worker's then.
func TestChainDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := startChain(t, "import os\n__file__ = '"+filepath.Join(dir, "h.py")+"'\n"+gated+`runpod.serverless.start({"handler": handler})`, 1)
	c.Offer(apidouble.Job("j"))
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(dir, "began-j")); return err == nil }, patience, 10*time.Millisecond)
	c.drain()
	time.Sleep(time.Second)
	require.NotContains(t, c.out.String(), "Received shutdown signal")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "j"), nil, 0o600))
	require.Equal(t, `{"output":"j"}`, c.results(t, 1)[0].Body)
	settled := time.Now()
	<-c.over
	require.Less(t, time.Since(settled), 8*time.Second, "held calls kept the program until it was killed")
	require.NoError(t, c.err)
	require.Equal(t, worker.Drained, c.reason)
	require.Contains(t, c.out.String(), "Received shutdown signal")
}

func TestChainRefreshes(t *testing.T) {
	t.Parallel()
	c := startChain(t, `
import runpod
runpod.serverless.start({"handler": lambda job: job["id"], "refresh_worker": True})
`, 1)
	c.Offer(apidouble.Job("j1"), apidouble.Job("j2"))
	<-c.over
	require.NoError(t, c.err)
	require.Equal(t, worker.Refreshed, c.reason)
	require.Equal(t, `{"output":"j1","stopPod":true}`, c.results(t, 1)[0].Body)
	require.Equal(t, 1, c.Waiting())
}

func TestChainDies(t *testing.T) {
	t.Parallel()
	c := startChain(t, `
import os, runpod
def handler(job): os._exit(7)
runpod.serverless.start({"handler": handler})
`, 1)
	for n, id := range []string{"j1", "j2"} { // the second one comes to a new life of the program
		c.Offer(apidouble.Job(id))
		require.Contains(t, c.results(t, n+1)[n].Body, "the program ended (exit code 7)")
	}
	c.drain()
	<-c.over
	require.NoError(t, c.err)
	require.Equal(t, worker.Drained, c.reason)
}
