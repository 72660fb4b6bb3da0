package test

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// echoWorker starts a worker whose jobs are done at once.
func echoWorker(t *testing.T, platform *apidouble.API, state string) *worker {
	t.Helper()
	args := []string{binary(t), "run", "--handler", "echo", "--concurrency", "4", "--state-dir", state}
	env := append(environment(platform, "w1"), "RUNPOD_SKIP_FITNESS_CHECKS=true", "RUNPOD_PING_INTERVAL=1000")
	return &worker{process: start(t, command{args: args, env: env}), API: platform}
}

func (w *worker) kill(t *testing.T) {
	t.Helper()
	w.signal(t, syscall.SIGKILL)
	w.wait(t)
}

// A result that a killed worker could not deliver is delivered by the next one, once, and the journal is empty then.
func TestPS01AResultOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	d, state := apidouble.New(t), t.TempDir()
	d.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: http.StatusServiceUnavailable} })
	w := echoWorker(t, d, state)
	long := strings.Repeat("x", 100_000)
	d.Offer(`{"id":"small","input":"a"}`, `{"id":"large","input":"`+long+`"}`)
	eventually(t, func() bool { return len(w.results("small")) > 0 && len(w.results("large")) > 0 }, "no post")
	w.kill(t)
	d.On(apidouble.Done, nil)

	w = echoWorker(t, d, state)
	eventually(t, func() bool { return len(d.Accepted(apidouble.Done)) == 2 }, "not delivered")
	d.Offer(`{"id":"new","input":1}`)
	eventually(t, func() bool { return len(w.results("new")) > 0 }, "no next job")
	accepted := d.Accepted(apidouble.Done)
	require.Len(t, accepted, 3)
	for _, post := range accepted {
		if post.Job == "large" {
			require.JSONEq(t, `{"output":"`+long+`"}`, post.Body)
		}
	}
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
	left, err := filepath.Glob(filepath.Join(state, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// PS-03: the job of a worker that was killed is nobody's until the platform hands it out again.
func TestPS03OrphansAfterAQuickRestart(t *testing.T) {
	t.Parallel()
	d, g, state := apidouble.New(t), newGates(t), t.TempDir()
	w := runWorker(t, d, "gate.py", []string{"RUNPOD_PING_INTERVAL=1000"}, "--state-dir", state)
	w.Offer(g.job("j1"))
	g.awaitStarted(1)
	w.kill(t)
	before := len(d.Calls(apidouble.Ping))

	w = runWorker(t, d, "gate.py", []string{"RUNPOD_PING_INTERVAL=1000"}, "--state-dir", state)
	eventually(t, func() bool { return len(d.Calls(apidouble.Ping)) > before+1 }, "no ping")
	for _, ping := range d.Calls(apidouble.Ping)[before:] {
		require.Empty(t, ping.Query.Get("job_id"))
	}
	require.Empty(t, w.results("j1"))
	g.open("j1")
	w.Offer(g.job("j1"))
	require.Equal(t, `"j1"`, string(w.result(t, "j1").Output))
}

// A place that cannot have a journal costs a warning and nothing else.
func TestPS01NoPlaceForAJournal(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	w := echoWorker(t, d, "/proc/nowhere")
	d.Offer(`{"id":"j1","input":1}`)
	require.Equal(t, "1", string(w.result(t, "j1").Output))
	require.Equal(t, 1, strings.Count(w.stderr.String(), "There is no journal"))
}
