package worker

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker/apidouble"
)

// misdeed is a handler that does what its input says, in Python.
const misdeed = `
import runpod, threading, time

def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value

def fail(error):
    raise error

class Rude(Exception):
    def __str__(self): raise self

def late(job):
    def tell():
        for n in range(20):
            runpod.serverless.progress_update(job, n)
            time.sleep(0.01)
    threading.Thread(target=tell).start()
    return "early"

def handler(job):
    if "yield" in job["input"]:
        return (item for item in eval(job["input"]["yield"]))
    return eval(job["input"]["return"])

runpod.serverless.start({"handler": handler})
`

// withProgram is a worker with a real program, on a platform on the loopback interface.
func withProgram(t *testing.T, text string, cfg Config) (api *apidouble.API, programs func() int) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no python3 in PATH")
		}
		t.Skip("no python3 in PATH")
	}
	file := filepath.Join(t.TempDir(), "handler.py")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	api = apidouble.New(t)
	platform := client.New(client.Config{URLs: api.Templates(), WorkerID: "w1"})
	t.Cleanup(platform.Close)
	lives := make(chan struct{}, 100)
	w := New(cfg, func() Handler {
		lives <- struct{}{}
		return program.New(program.Options{
			Args: program.Command(file, ""), Stdout: io.Discard, Stderr: io.Discard, Log: slog.New(slog.DiscardHandler),
		})
	}, platform)
	fetch, drain := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := w.Run(fetch, context.Background())
		if err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { drain(); <-ended })
	return api, func() int { return len(lives) }
}

// soon is for what must happen on a machine that may be busy.
const soon = 60 * time.Second

// HC-01, HC-04, HC-10, HC-13: whatever a handler gives back ends in one terminal post, which is true, and small unless it
// is the result.
func TestMisdeeds(t *testing.T) {
	const small, short = 2000, protocol.MaxError * 5 / 4 // which an error may grow to as JSON
	run := func(expression string) string { return `{"return":` + string(protocol.Quote(expression)) + `}` }
	stream := func(expression string) string { return `{"yield":` + string(protocol.Quote(expression)) + `}` }
	tests := []struct {
		name, input string
		says        string // in the error; empty: the job is COMPLETED
		most        int    // bytes of the post
	}{
		{"bytes", run(`{"image": b"png"}`), "output.image: bytes is not JSON", small},
		{"NaN", run(`[1, float("nan")]`), "output[1]: NaN is not valid JSON", small},
		{"a lone surrogate", run(`{"text": "a\ud83d"}`), "output.text: lone surrogate", small},
		{"a set as a key's value", run(`{"a": {1}}`), "output.a: set is not JSON", small},
		{"a number without end", run(`10 ** 5000`), "output: ", small},
		{"a value deep inside itself", run(`nested(100_000)`), "output: nested too deeply for JSON", small},
		{"a value that is just deep", run(`nested(500)`), "", small},
		{"25 MB", run(`"x" * 25_000_000`), "the result is too large: 25000013 bytes, the limit is 20000000", small},
		{"one byte too many", run(`"x" * (20_000_000 - 12)`), "the result is too large: 20000001 bytes, the limit is 20000000", small},
		{"not one byte too many", run(`"x" * (20_000_000 - 13)`), "", 20_000_000},
		{"more than a frame holds", run(`"x" * 70_000_000`), "the result is too large: 70000002 bytes", small},
		{"an error of 30 MB", run(`{"error": "boom " * 6_000_000}`), "\n...TRUNCATED 2993", short},
		{"an error of 30 MB that is no text", run(`{"error": {"trace": "boom " * 6_000_000, "kind": "loud"}}`), `"kind":"loud"`, short},
		{"an error of 30 MB beside an output", run(`{"error": "boom " * 6_000_000, "seen": 1}`), "boom boom", short},
		{"an exception of 30 MB", run(`fail(ValueError("boom " * 6_000_000))`), "...TRUNCATED 299", short},
		{"an exception of 30 MB of others' letters", run(`fail(ValueError("\u6b22\U0001f4a5" * 5_000_000))`), "CHARACTERS", short},
		{"an exception of a generator of 30 MB", stream(`iter(lambda: fail(ValueError("boom " * 6_000_000)), 1)`), "...TRUNCATED 299", short},
		{"an item with an error of 1 MB", stream(`[{"error": "boom " * 200_000}]`), "...TRUNCATED 93", short},
		{"an exception without a text", run(`fail(Rude())`), "Rude", small},
		{"an item of 1.5 MB", stream(`["a", "x" * 1_500_000]`), "an item of the stream is too large: 1500013 bytes, the limit is 1048576", small},
		{"an item one byte too large", stream(`["a", "x" * (2**20 - 12)]`), "1048577 bytes, the limit is 1048576", small},
		{"an item not one byte too large", stream(`["a", "x" * (2**20 - 13)]`), "", small},
		{"an item of 30 MB", stream(`["a", "x" * 30_000_000]`), "an item of the stream is too large", small},
		{"an item that is not JSON", stream(`["a", b"x"]`), "stream[1]: bytes is not JSON", small},
		{"progress that is not JSON", run(`runpod.serverless.progress_update(job, float("nan")) or "done"`), "", small},
		{"progress of 30 MB", run(`runpod.serverless.progress_update(job, "x" * 30_000_000) or "done"`), "", small},
		{"progress after the end", run(`late(job)`), "", small},
	}
	api, programs := withProgram(t, misdeed, Config{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			job := string(protocol.Quote(strings.ReplaceAll(tt.name, " ", "-")))
			api.Offer(`{"id":` + job + `,"input":` + tt.input + `}`)
			id := strings.Trim(job, `"`)
			require.Eventually(t, func() bool { return len(api.Posts(apidouble.Done, id)) > 0 }, soon, time.Millisecond)
			post := api.Posts(apidouble.Done, id)[0]
			var body struct {
				Output *json.RawMessage
				Error  string
			}
			require.NoError(t, json.Unmarshal([]byte(post.Body), &body))
			require.Equal(t, tt.says == "", body.Error == "", brief(body.Error))
			require.Contains(t, body.Error, tt.says)
			require.True(t, tt.says != "" || body.Output != nil)
			require.LessOrEqual(t, len(post.Body), tt.most)

			api.Offer(`{"id":"next` + id + `","input":{"return":"1"}}`)
			require.Eventually(t, func() bool { return len(api.Posts(apidouble.Done, "next"+id)) > 0 }, soon, time.Millisecond)
			require.Len(t, api.Posts(apidouble.Done, id), 1)
			for _, progress := range api.Posts(apidouble.Progress, id) {
				require.False(t, progress.At.After(post.At), "progress after the end")
			}
		})
	}
	require.Equal(t, 1, programs(), "none of it cost the program its life")
}

// A GPU that a real program cannot use any more: its job ends as it said, those beside it are run again.
func TestSick_RealProgram(t *testing.T) {
	api, programs := withProgram(t, `
import asyncio, os, runpod
started = lambda job: os.path.exists(__file__ + job)
async def handler(job):
    if job["input"] == "sick":
        while not (started("a") and started("b")):
            await asyncio.sleep(0.01)
        raise RuntimeError("CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported")
    if started(job["id"]):
        return "run again"
    open(__file__ + job["id"], "w").close()
    await asyncio.sleep(3600)
runpod.serverless.start({"handler": handler})
`, Config{Concurrency: 3})
	api.Offer(`{"id":"a","input":1}`, `{"id":"b","input":1}`, `{"id":"s","input":"sick"}`)
	require.Eventually(t, func() bool { return len(api.Accepted(apidouble.Done)) >= 3 }, soon, time.Millisecond)
	for _, post := range api.Accepted(apidouble.Done) {
		if post.Job == "s" {
			require.Contains(t, post.Body, "device-side assert triggered")
		} else {
			require.Equal(t, `{"output":"run again"}`, post.Body)
		}
	}
	require.Equal(t, 2, programs())
}
