package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/test/double"
)

// worker is a running run command and the platform that it works for.
type worker struct {
	*process
	*double.Double
}

// platform starts a double that ends with the test.
func platform(t *testing.T) *double.Double {
	t.Helper()
	return platformHolding(t, double.Hold)
}

// platformHolding is one that keeps its polls open for another time.
func platformHolding(t *testing.T, hold time.Duration) *double.Double {
	t.Helper()
	d := double.New(hold)
	t.Cleanup(d.Close)
	return d
}

// runWorker starts the worker with a handler file and returns at once, so that scripts set before
// see its first call.
func runWorker(t *testing.T, d *double.Double, file string, env []string, args ...string) *worker {
	t.Helper()
	args = append([]string{binary(t), "run", "--python", python(t), "--handler", handler(t, file)}, args...)
	// The state of the machine that tests run on is nobody's fault.
	env = append(append(d.Env("w1"), "RUNPOD_SKIP_FITNESS_CHECKS=true"), env...)
	// Cleanups run last first: the worker ends before its platform.
	return &worker{process: start(t, command{args: args, env: env, dir: t.TempDir()}), Double: d}
}

// awaitTake waits until the worker asks for jobs.
func (w *worker) awaitTake(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return len(w.Calls(double.Take, double.Batch)) > 0 || !w.alive() }, "no take")
	require.True(t, w.alive(), "the worker has ended: %s", w.stderr)
}

// result is the body of a job's one result.
func (w *worker) result(t *testing.T, id string) result {
	t.Helper()
	eventually(t, func() bool { return len(w.Results(id)) > 0 }, "no result of %s", id)
	posts := w.Results(id)
	require.Len(t, posts, 1, "results of %s", id)
	return decode[result](t, posts[0].Body)
}

// result is a job-done body.
type result struct {
	Output  json.RawMessage `json:"output"`
	Error   json.RawMessage `json:"error"`
	StopPod bool            `json:"stopPod"`
}

// errorText is the error, which must be a JSON string for the platform to accept it.
func (r result) errorText(t *testing.T) string {
	t.Helper()
	require.NotEmpty(t, r.Error, "no error in the result")
	return decode[string](t, r.Error)
}

func decode[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(raw, &v), "%s", raw)
	return v
}

// gates is a folder that jobs of gate.py wait on.
type gates struct {
	t   *testing.T
	dir string
}

func newGates(t *testing.T) gates {
	t.Helper()
	return gates{t: t, dir: t.TempDir()}
}

func (g gates) input(gate string) string {
	return `{"dir":` + strconv.Quote(g.dir) + `,"gate":"` + gate + `"}`
}

// job is a whole job, named as its gate.
func (g gates) job(gate string) string {
	return `{"id":"` + gate + `","input":` + g.input(gate) + `}`
}

func (g gates) open(gate string) {
	g.t.Helper()
	require.NoError(g.t, os.WriteFile(filepath.Join(g.dir, gate), nil, 0o600))
}

// started is how many handlers have started.
func (g gates) started() int { return lineCount(filepath.Join(g.dir, "started")) }

func (g gates) awaitStarted(n int) {
	g.t.Helper()
	eventually(g.t, func() bool { return g.started() >= n }, "%d started, want %d", g.started(), n)
}

// lineCount is 0 for a file that is not there yet.
func lineCount(path string) int {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n := 0
	for _, b := range raw {
		if b == '\n' {
			n++
		}
	}
	return n
}
