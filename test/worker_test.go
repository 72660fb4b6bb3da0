package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// worker is a running run command and the platform that it works for.
type worker struct {
	*process
	*apidouble.API
}

// platformKey is the credential of a platform's workers, which is sent as it stands.
const platformKey = "platform-key"

// environment makes a process the worker of a platform.
func environment(platform *apidouble.API, worker string) []string {
	urls := platform.Templates()
	return []string{
		"RUNPOD_WEBHOOK_GET_JOB=" + urls.GetJob,
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + urls.PostOutput,
		"RUNPOD_WEBHOOK_POST_STREAM=" + urls.PostStream,
		"RUNPOD_WEBHOOK_PING=" + urls.Ping,
		"RUNPOD_AI_API_KEY=" + platformKey,
		"RUNPOD_ENDPOINT_ID=ep",
		"RUNPOD_POD_ID=" + worker,
	}
}

// runWorker starts the worker with a handler file and returns at once, so that scripts set before
// see its first call.
func runWorker(t *testing.T, platform *apidouble.API, file string, env []string, args ...string) *worker {
	t.Helper()
	return runCommand(t, platform, env, append([]string{"--python", python(t), "--handler", handler(t, file)}, args...)...)
}

// runCommand starts the worker with any arguments. It runs no checks unless env says otherwise: the state of the machine
// that tests run on is nobody's fault.
func runCommand(t *testing.T, platform *apidouble.API, env []string, args ...string) *worker {
	t.Helper()
	env = append(append(environment(platform, "w1"), "RUNPOD_SKIP_FITNESS_CHECKS=true"), env...)
	args = append([]string{binary(t), "run"}, args...)
	// Cleanups run last first: the worker ends before its platform.
	return &worker{process: start(t, command{args: args, env: env, dir: t.TempDir()}), API: platform}
}

// awaitTake waits until the worker asks for jobs.
func (w *worker) awaitTake(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return len(w.Calls(apidouble.Take)) > 0 || !w.alive() }, "no take")
	require.True(t, w.alive(), "the worker has ended: %s", w.stderr)
}

// result is the body of a job's one result.
func (w *worker) result(t *testing.T, id string) result {
	t.Helper()
	eventually(t, func() bool { return len(w.results(id)) > 0 }, "no result of %s", id)
	posts := w.results(id)
	require.Len(t, posts, 1, "results of %s", id)
	return decode[result](t, posts[0].Body)
}

// results are the posts of a job's result so far.
func (w *worker) results(id string) []apidouble.Call { return w.Posts(apidouble.Done, id) }

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

func decode[T any, S []byte | json.RawMessage | string](t *testing.T, raw S) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(raw), &v), "%s", raw)
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
