package program_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

const platformKey = "rpa_of_the_tests"

// platformEnv is what a hosted worker finds in its environment. Nobody may call these addresses.
func platformEnv(extra ...string) []string {
	const base = "https://platform.invalid/v2/ep-1"
	return append(os.Environ(), append([]string{
		"RUNPOD_WEBHOOK_GET_JOB=" + base + "/job-take/$ID?gpu=NVIDIA+L4",
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + base + "/job-done/$RUNPOD_POD_ID/$ID?gpu=NVIDIA+L4",
		"RUNPOD_WEBHOOK_POST_STREAM=" + base + "/job-stream/$RUNPOD_POD_ID/$ID?gpu=NVIDIA+L4",
		"RUNPOD_WEBHOOK_PING=" + base + "/ping/$RUNPOD_POD_ID?gpu=NVIDIA+L4",
		"RUNPOD_AI_API_KEY=" + platformKey, "RUNPOD_PING_INTERVAL=1000", "HOME=/nonexistent",
	}, extra...)...)
}

// official runs a handler with the official SDK, which the worker's package does not hide.
func official(t *testing.T, text string) *child {
	t.Helper()
	return start(t, program.Options{
		Args: []string{installed(t), "-u", write(t, text)}, Env: platformEnv(), NoShim: true, WorkerID: "w-1",
	})
}

const everyKind = `
import asyncio, os, time, runpod
async def handler(job):
    way = job["input"].get("way")
    if way == "error": return {"error": "bad input", "seen": 1}
    if way == "raise": raise ValueError("boom")
    if way == "NaN": return float("nan")
    if way == "refresh": return {"refresh_worker": True, "last": 1}
    if way == "progress":
        runpod.serverless.progress_update(job, "half")
        while not os.path.exists(job["input"]["seen"]): await asyncio.sleep(0.01)
    if way == "sleep": await asyncio.sleep(300)
    if way == "exit": print("last words", flush=True); os._exit(7)
    return {"id": job["id"], "input": job["input"], "worker": os.environ["RUNPOD_POD_ID"], "more": job.get("webhook")}
runpod.serverless.start({"handler": handler})
`

// The official SDK is served without knowing it.
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	c := official(t, everyKind)
	require.Contains(t, c.ready.Name, "handler.py (with an SDK of its own)")
	require.True(t, c.ready.Modifier)
	require.Nil(t, c.ready.Environ)

	t.Run("job", func(t *testing.T) {
		out, err := c.Handle(t.Context(), parse(t, `{"id":"j-1","input":{"ü":[1,2.50]},"webhook":"w"}`), &sink{})
		require.NoError(t, err)
		require.Equal(t, `{"id": "j-1", "input": {"ü": [1, 2.5]}, "worker": "w-1", "more": "w"}`, string(out.Output))
		require.Empty(t, out.Error)
	})
	t.Run("error", func(t *testing.T) {
		out, _ := c.do(`{"way":"error"}`)
		require.Equal(t, "bad input", out.Error)
		require.Equal(t, `{"seen": 1}`, string(out.Output))
	})
	t.Run("exception", func(t *testing.T) {
		out, _ := c.do(`{"way":"raise"}`)
		require.Contains(t, out.Error, `"error_message": "boom"`)
		require.Contains(t, out.Error, `"worker_id": "w-1"`)
	})
	t.Run("a result that is no JSON", func(t *testing.T) {
		out, _ := c.do(`{"way":"NaN"}`)
		require.Contains(t, out.Error, "NaN and Infinity are not JSON")
	})
	t.Run("progress", func(t *testing.T) {
		seen := filepath.Join(t.TempDir(), "seen")
		s := &sink{}
		job := parse(t, `{"id":"j-p","input":{"way":"progress","seen":"`+seen+`"}}`)
		var out protocol.Outcome
		var err error
		var running sync.WaitGroup
		running.Go(func() { out, err = c.Handle(t.Context(), job, s) })
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.progress) == 1
		}, patience, 10*time.Millisecond)
		require.NoError(t, os.WriteFile(seen, nil, 0o600))
		running.Wait()
		require.NoError(t, err)
		require.Empty(t, out.Error)
		require.Equal(t, []string{`"half"`}, s.progress)
	})
	t.Run("stopped", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("the platform stops it")
		time.AfterFunc(500*time.Millisecond, func() { cancel(stopped) })
		_, err := c.handle(ctx, "j-s", `{"way":"sleep"}`, &sink{})
		require.ErrorIs(t, err, stopped)
		out, _ := c.do(`{"way":"next"}`)
		require.Contains(t, string(out.Output), "next")
	})
	t.Run("refresh", func(t *testing.T) {
		out, _ := c.do(`{"way":"refresh"}`)
		require.True(t, out.Refresh)
		require.Equal(t, `{"last": 1}`, string(out.Output))
	})
	t.Run("exit", func(t *testing.T) {
		_, err := c.handle(t.Context(), "j-x", `{"way":"exit"}`, &sink{})
		require.ErrorContains(t, err, "the program ended (exit code 7); its last lines:")
		require.ErrorContains(t, err, "last words")
		<-c.Exited()
		require.EqualError(t, c.Err(), "the program ended (exit code 7)")
	})
}

func TestOfficialStream(t *testing.T) {
	t.Parallel()
	c := official(t, `
import runpod
def handler(job):
    for n in range(job["input"]):
        yield {"n": n}
runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
`)
	out, s := c.do(`3`)
	require.Equal(t, []string{`{"n": 0}`, `{"n": 1}`, `{"n": 2}`}, s.chunks)
	require.Equal(t, `[{"n": 0}, {"n": 1}, {"n": 2}]`, string(out.Output))
	require.True(t, out.Stream)
}

// How many jobs it works at is the program's own decision.
func TestOfficialConcurrency(t *testing.T) {
	t.Parallel()
	c := official(t, `
import asyncio, runpod
inside, all_in = 0, asyncio.Event()
async def handler(job):
    global inside
    inside += 1
    if inside == 3: all_in.set()
    await all_in.wait()
    return inside
runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda current: 3})
`)
	require.Equal(t, 3, c.Limit())
	n, err := c.Concurrency(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	var jobs sync.WaitGroup
	for _, id := range []string{"a", "b", "c"} {
		jobs.Go(func() {
			out, err := c.handle(t.Context(), id, "{}", &sink{})
			if err != nil || string(out.Output) != "3" {
				t.Errorf("%s: %s %s %v", id, out.Output, out.Error, err)
			}
		})
	}
	jobs.Wait()
}

// A program whose result asked for a fresh worker may exit by itself; that is the end that it has announced.
func TestRefreshExits(t *testing.T) {
	t.Parallel()
	const once = `
url() { local filled=${1//\$RUNPOD_POD_ID/$RUNPOD_POD_ID}; echo "${filled//\$ID/$2}"; }
until job=$(curl -sf -H "Authorization: $RUNPOD_AI_API_KEY" "$(url "$RUNPOD_WEBHOOK_GET_JOB" w)") && [ -n "$job" ]; do :; done
curl -sf -H "Authorization: $RUNPOD_AI_API_KEY" -d '{"output":"last","stopPod":true}' "$(url "$RUNPOD_WEBHOOK_POST_OUTPUT" j-1)"
echo bye
`
	begin := func(t *testing.T, end string) *child {
		t.Helper()
		needs(t, "curl")
		c := start(t, program.Options{Args: []string{"bash", "-c", once + end}, Env: platformEnv(), WorkerID: "w-1"})
		out, err := c.handle(t.Context(), "j-1", "{}", &sink{})
		require.NoError(t, err)
		require.True(t, out.Refresh)
		c.shows("bye")
		return c
	}
	t.Run("and is stopped", func(t *testing.T) {
		c := begin(t, "exit 0")
		select {
		case <-c.Exited():
			require.Fail(t, "the end was told as a crash", c.Err())
		case <-time.After(time.Second):
		}
		c.stop()
		<-c.Exited()
	})
	t.Run("and is missed", func(t *testing.T) {
		c := begin(t, "exit 0")
		_, err := c.handle(t.Context(), "late", "{}", &sink{})
		require.ErrorContains(t, err, "the program ended (exit code 0)")
		<-c.Exited()
	})
	t.Run("with a failure", func(t *testing.T) {
		c := begin(t, "exit 3")
		<-c.Exited()
		require.EqualError(t, c.Err(), "the program ended (exit code 3)")
	})
}

// needs skips a test whose tool is not installed, but never where everything must be.
func needs(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		_, err := exec.LookPath(tool)
		if err != nil && os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		if err != nil {
			t.Skip(err)
		}
	}
}

func TestOfficialCheckFails(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"python":   {"-u"},
		"a script": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, `
import runpod
@runpod.serverless.register_fitness_check
def check_model(): raise RuntimeError("no model")
runpod.serverless.start({"handler": lambda job: 1})
`)
			command := append([]string{installed(t)}, append(args, file)...)
			if args == nil {
				command = []string{"bash", "-c", `"$0" "$1"; sleep 300`, installed(t), file}
			}
			o, out := options(t, program.Options{Args: command, Env: platformEnv(), NoShim: true, WorkerID: "w-1"})
			_, err := program.New(o).Start(t.Context())
			var unhealthy *program.UnhealthyError
			require.ErrorAs(t, err, &unhealthy, out)
			require.Equal(t, "check_model", unhealthy.Check)
			require.Equal(t, "RuntimeError: no model", unhealthy.Reason)
			require.Contains(t, out.String(), "Running 1 fitness check(s)...")
		})
	}
}

// The SDK would hold its calls for a minute and more; here it is let go at once.
func TestOfficialStopsAtOnce(t *testing.T) {
	t.Parallel()
	c := official(t, everyKind)
	begin := time.Now()
	c.stop()
	require.Less(t, time.Since(begin), 15*time.Second, "held calls kept the program")
	var exit *program.ExitError
	require.ErrorAs(t, c.Err(), &exit)
	require.Zero(t, exit.State, "it ended by itself")
}

// Who does not come to the shim, comes to the gateway.
func TestWhatTheShimMisses(t *testing.T) {
	t.Parallel()
	python := installed(t)
	file := write(t, `
import runpod, runpod.serverless
def handler(job): return hasattr(runpod, "_worker")
runpod.serverless.start({"handler": handler})
`)
	for _, tt := range []struct {
		name, output string
		args         []string
	}{
		{"the shim is first", "true", []string{python, file}},
		{"isolated", "false", []string{python, "-I", file}},
		{"without environment", "false", []string{python, "-E", file}},
		{"PYTHONPATH overwritten", "false", []string{"bash", "-c", `PYTHONPATH=/x "$0" "$1"`, python, file}},
		{"a server beside it", "false", []string{"bash", "-c", `"$0" -m http.server 0 --bind 127.0.0.1 & PYTHONPATH= "$0" "$1"; kill $!`, python, file}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, program.Options{Args: tt.args, Env: platformEnv(), WorkerID: "w-1"})
			out, _ := c.do("{}")
			require.Equal(t, tt.output, string(out.Output))
		})
	}
}

// A worker needs no SDK at all.
func TestShellWorker(t *testing.T) {
	t.Parallel()
	needs(t, "curl", "jq")
	script, err := filepath.Abs("../../../test/handlers/worker.sh")
	require.NoError(t, err)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	docs, err := os.ReadFile("../../../docs/handlers.md")
	require.NoError(t, err)
	_, worker, _ := strings.Cut(string(text), "set -u\n\n")
	require.Contains(t, string(docs), "```bash\n"+worker+"```\n", "the page shows this script")

	c := start(t, program.Options{Args: []string{"bash", script}, Env: platformEnv("http_proxy=http://127.0.0.1:9"), WorkerID: "w-1"})
	out, _ := c.do(`{"name":"you"}`)
	require.JSONEq(t, `{"hello":"you"}`, string(out.Output))
	out, _ = c.do(`{}`)
	require.Equal(t, "no name given", out.Error)
}

// Where the shim cannot be set up, or is not wanted, the gateway has to do.
func TestWithoutTheShim(t *testing.T) {
	t.Parallel()
	needs(t, "curl", "jq")
	absent := filepath.Join(t.TempDir(), "absent")
	script, err := filepath.Abs("../../../test/handlers/worker.sh")
	require.NoError(t, err)
	run := program.Options{Args: []string{"bash", script}, Env: platformEnv(), WorkerID: "w-1"}
	t.Run("falls back", func(t *testing.T) {
		o, out := options(t, run)
		o.Log = slog.New(slog.NewTextHandler(out, nil))
		p := program.New(o).WithoutPlace(absent)
		_, err := p.Start(t.Context())
		require.NoError(t, err)
		c := &child{p, t, protocol.Ready{}, out}
		defer c.stop()
		result, _ := c.do(`{"name":"you"}`)
		require.JSONEq(t, `{"hello":"you"}`, string(result.Output))
		require.Contains(t, out.String(), "level=WARN")
		require.Contains(t, out.String(), "the Python shim cannot be set up")
	})
	t.Run("nor the gateway", func(t *testing.T) {
		o, _ := options(t, program.Options{Args: run.Args})
		_, err := program.New(o).WithoutPlace(absent).Start(t.Context())
		var setup *program.SetupError
		require.ErrorAs(t, err, &setup)
	})
	t.Run("not wanted, and no platform", func(t *testing.T) {
		o, _ := options(t, program.Options{Args: run.Args, NoShim: true})
		_, err := program.New(o).Start(t.Context())
		require.ErrorContains(t, err, "$RUNPOD_WEBHOOK_GET_JOB for its jobs, which is not set")
	})
	t.Run("the environment is the program's own", func(t *testing.T) {
		c := start(t, program.Options{Args: []string{"bash", "-c", `env | sort; exec bash "$0"`, script}, Env: platformEnv("PYTHONPATH=/mine"), NoShim: true, WorkerID: "w-1"})
		for _, line := range []string{
			"PYTHONPATH=/mine\n", "PYTHONUNBUFFERED=1\n", "RUNPOD_POD_ID=w-1\n", "RUNPOD_AI_API_KEY=" + platformKey + "\n",
			"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS=true\n", "RUNPOD_SKIP_GPU_CHECK=true\n", "/v2/ep-1/job-take/$ID?gpu=NVIDIA+L4\n",
		} {
			c.shows(line)
		}
		require.NotContains(t, c.out.String(), "RUNPOD_SKIP_FITNESS_CHECKS")
		require.NotContains(t, c.out.String(), "RUNPODCTL_WORKER_SOCKET")
		require.NotContains(t, c.out.String(), "platform.invalid")
	})
}

// A program may set what the fitness checks go by while it loads.
func TestLateThresholds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, code string
		env        []string
		want       map[string]string
	}{
		{"none", "", platformEnv(), map[string]string{}},
		{"without a platform", "", nil, map[string]string{}},
		{"of the environment", "", platformEnv("RUNPOD_MIN_MEMORY_GB=8"), map[string]string{"RUNPOD_MIN_MEMORY_GB": "8"}},
		{"set late", `os.environ["RUNPOD_MIN_DISK_PERCENT"] = "20"`, platformEnv("RUNPOD_MIN_DISK_PERCENT=5"), map[string]string{"RUNPOD_MIN_DISK_PERCENT": "20"}},
		{"taken away", `del os.environ["RUNPOD_GPU_TEST_TIMEOUT"]`, platformEnv("RUNPOD_GPU_TEST_TIMEOUT=5"), map[string]string{}},
		{"a switch of the user's", "", platformEnv("RUNPOD_SKIP_GPU_CHECK=1"), map[string]string{"RUNPOD_SKIP_GPU_CHECK": "1"}},
		{"a switch set late", `os.environ["RUNPOD_SKIP_GPU_CHECK"] = "0"`, platformEnv(), map[string]string{"RUNPOD_SKIP_GPU_CHECK": "0"}},
		{"all checks off", `os.environ["RUNPOD_SKIP_FITNESS_CHECKS"] = "yes"`, platformEnv(), map[string]string{"RUNPOD_SKIP_FITNESS_CHECKS": "yes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, program.Options{
				Args: []string{"python3", "-c", "import os\n" + tt.code + hello}, Env: tt.env,
			})
			require.Equal(t, tt.want, c.ready.Environ)
		})
	}
}

// A start script goes on when its Python has died: that costs the job, and nothing else.
func TestSDKDiesBelowAScript(t *testing.T) {
	t.Parallel()
	python, file := installed(t), write(t, everyKind)
	t.Run("and is started again", func(t *testing.T) {
		t.Parallel()
		c := start(t, program.Options{
			Args: []string{"bash", "-c", `while true; do "$0" -u "$1"; done`, python, file}, Env: platformEnv(), NoShim: true, WorkerID: "w-1",
		})
		_, err := c.handle(t.Context(), "j-1", `{"way":"exit"}`, &sink{})
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		out, _ := c.do(`{"way":"well"}`)
		require.Contains(t, string(out.Output), "well")
	})
	t.Run("for good", func(t *testing.T) {
		t.Parallel()
		c := start(t, program.Options{
			Args: []string{"bash", "-c", `"$0" -u "$1"; sleep 300`, python, file}, Env: platformEnv(), NoShim: true, WorkerID: "w-1",
		})
		_, err := c.handle(t.Context(), "j-1", `{"way":"exit"}`, &sink{})
		require.ErrorContains(t, err, "the program's process that had the job is gone")
	})
}

func parse(t *testing.T, raw string) protocol.Job {
	t.Helper()
	job, err := protocol.ParseJob([]byte(raw))
	require.NoError(t, err)
	return job
}

// What a program that starts in vain could have done is said by the doors that were open to it.
func TestStartInVainWithAGateway(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, want string
		noShim             bool
	}{
		{"waits", "sleep 60", "used neither way to its jobs yet", false},
		{"waits, without the shim", "sleep 60", "has not asked for a job yet", true},
		{"ends, without the shim", "true", "the program ended (exit code 0) before it asked for a job", true},
		{"no runpod, without the shim", "python3 -S -c 'import runpod'", "its Python needs one: pip install runpod", true},
		{"no runpod", "python3 -I -S -c 'import runpod'", "hide the worker's runpod package from it, and its Python has none", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, _ := options(t, program.Options{Args: []string{"bash", "-c", tt.script}, Env: platformEnv(), NoShim: tt.noShim})
			ctx := t.Context()
			if strings.HasPrefix(tt.name, "waits") {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
			}
			_, err := program.New(o).Start(ctx)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
