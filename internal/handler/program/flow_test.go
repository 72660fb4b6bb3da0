package program_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

func TestManyAsyncJobs(t *testing.T) {
	c := startFile(t, write(t, `
import asyncio, runpod
together = 0
async def handler(job):
    global together
    together += 1
    while together < 200: await asyncio.sleep(0.01)
    return job["id"]
runpod.serverless.start({"handler": handler})
`))
	var jobs sync.WaitGroup
	for i := range 200 {
		jobs.Go(func() {
			id := fmt.Sprintf("job-%d", i)
			out, err := c.handle(t.Context(), id, "{}", &sink{})
			if err != nil || string(out.Output) != `"`+id+`"` {
				t.Errorf("%s: %s %v", id, out.Output, err)
			}
		})
	}
	jobs.Wait()
}

func TestSyncThreads(t *testing.T) {
	for _, tt := range []struct {
		name, handler, output string
		stream                bool
		limit                 int
	}{
		{"values", "barrier.wait(20); return threading.current_thread() is threading.main_thread()", "false", false, 3},
		{"streams", "barrier.wait(20); yield 1", "[]", true, 3},
		{"asyncio.run inside", "barrier.wait(20); return asyncio.run(asyncio.sleep(0, 'ran'))", `"ran"`, false, 3},
		{"async after all", "return asyncio.sleep(0, threading.current_thread() is threading.main_thread())", "false", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, program.Options{SyncThreads: 3, Args: program.Command(write(t, `
import asyncio, runpod, threading
barrier = threading.Barrier(3)
def handler(job):
    `+tt.handler+`
runpod.serverless.start({"handler": handler})
`), "")})
			require.Equal(t, 3, c.Limit())
			var jobs sync.WaitGroup
			for i := range 6 {
				jobs.Go(func() {
					out, err := c.handle(t.Context(), fmt.Sprint("j", i), "{}", &sink{})
					if err != nil || out.Error != "" || out.Stream != tt.stream {
						t.Errorf("%+v %v", out, err)
					}
					if tt.limit != 0 && string(out.Output) != tt.output {
						t.Errorf("output %s", out.Output)
					}
				})
			}
			jobs.Wait()
			require.Equal(t, tt.limit, c.Limit())
		})
	}
}

// A plain function may give back what asyncio makes only inside a running loop, or for a loop.
func TestFunctionsThatReturnFutures(t *testing.T) {
	tests := []struct {
		name, handler string
		output, err   string
	}{
		{"gather", "return asyncio.gather(work(job), work(job))", `["j","j"]`, ""},
		{"ensure_future", "return asyncio.ensure_future(work(job))", `"j"`, ""},
		{"create_task", "return asyncio.create_task(work(job))", `"j"`, ""},
		{"task of the running loop", "return asyncio.get_running_loop().create_task(work(job))", `"j"`, ""},
		{"task of the event loop", "return asyncio.get_event_loop().create_task(work(job))", `"j"`, ""},
		{"future that is done", "f = asyncio.get_event_loop().create_future(); f.set_result(1); return f", `1`, ""},
		{"the job is as it came", "name = job.pop('id'); return asyncio.get_running_loop().create_task(work({'id': name}))", `"j"`, ""},
		{"a value after all", "asyncio.get_running_loop(); return 'ran'", `"ran"`, ""},
		{"an error of its own", "raise RuntimeError('no running event loop here')", "", "no running event loop here"},
		{"never content", "raise RuntimeError('no running event loop')", "", "no running event loop"},
		{"a closed loop", "loop = asyncio.new_event_loop(); f = loop.create_future(); loop.close(); return f", "", "Future"},
	}
	for _, tt := range tests {
		for _, threads := range []int{1, 2} {
			t.Run(fmt.Sprint(tt.name, ", threads ", threads), func(t *testing.T) {
				t.Parallel()
				c := start(t, program.Options{SyncThreads: threads, Args: program.Command(write(t, `
import asyncio, runpod
calls = 0
async def work(job):
    await asyncio.sleep(0)
    return job["id"]
def handler(job):
    global calls
    calls += 1
    if job["input"] == "calls": return calls
    `+tt.handler+`
runpod.serverless.start({"handler": handler})
`), "")})
				for range 3 {
					out, err := c.handle(t.Context(), "j", "{}", &sink{})
					require.NoError(t, err)
					require.Equal(t, tt.output, string(out.Output), out.Error)
					require.Contains(t, out.Error, tt.err)
				}
				out, _ := c.do(`"calls"`)
				require.Contains(t, []string{"4", "5"}, string(out.Output), "one call more than jobs, or none")
			})
		}
	}
}

// An error of the same kind from a handler whose calls have come back is only an error.
func TestKnownHandlerIsNotCalledAgain(t *testing.T) {
	c := startFile(t, write(t, `
import asyncio, runpod
def handler(job):
    if job["input"]: asyncio.get_running_loop()
    return asyncio.run(asyncio.sleep(0, "ran"))
runpod.serverless.start({"handler": handler})
`))
	for _, input := range []string{"0", "1", "0"} {
		out, _ := c.do(input)
		require.Equal(t, input == "0", string(out.Output) == `"ran"`)
		require.Equal(t, input == "1", strings.Contains(out.Error, "no running event loop"))
	}
}

func TestCancel(t *testing.T) {
	const preamble = `
import asyncio, runpod, sys, time
class Log:
    def write(self, text):
        with open(sys.argv[1], "a") as file: file.write(text)
log = Log()
`
	tests := []struct {
		name, handler string
		left          string // what the handler wrote while it was stopped
	}{
		{"async", `
async def handler(job):
    try: log.write("running "); await asyncio.sleep(60)
    finally: log.write("cleaned up")
`, "cleaned up"},
		{"async generator", `
async def handler(job):
    try:
        yield 1
        log.write("running "); await asyncio.sleep(60)
    finally: log.write("cleaned up")
`, "cleaned up"},
		{"async generator that goes on", `
async def handler(job):
    log.write("running ")
    try:
        while True: yield 1; await asyncio.sleep(0)
    finally: log.write("cleaned up")
`, "cleaned up"},
		{"generator", `
def handler(job):
    log.write("running ")
    try:
        while True: yield 1; time.sleep(0.001)
    finally: log.write("cleaned up")
`, "cleaned up"},
		{"async that proves so late", `
def handler(job):
    async def work():
        try: log.write("running "); await asyncio.sleep(60)
        finally: log.write("cleaned up")
    return work()
`, "cleaned up"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			log := t.TempDir() + "/log"
			file := write(t, preamble+tt.handler+"runpod.serverless.start({'handler': lambda job: 'next' if job['input'] else handler(job)})\n")
			c := start(t, program.Options{Args: program.Command(file, "", log)})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for range 1000 {
					if b, _ := os.ReadFile(log); strings.Contains(string(b), "running") {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
			_, err := c.handle(ctx, "j", "null", &sink{})
			require.ErrorIs(t, err, context.Canceled)
			b, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Contains(t, string(b), tt.left, "the handler is back when Handle returns")
			out, _ := c.do("1")
			require.Equal(t, `"next"`, string(out.Output))
		})
	}
}

func TestCancelOfBlockingCodeWaits(t *testing.T) {
	c := startFile(t, write(t, `
import runpod, time
def handler(job):
    time.sleep(0.5)
    return "done"
runpod.serverless.start({"handler": handler})
`))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	out, err := c.handle(ctx, "j", "{}", &sink{})
	require.Error(t, ctx.Err())
	require.NoError(t, err, "the handler did finish")
	require.Equal(t, `"done"`, string(out.Output))
}

func TestCancelBeforeItBegins(t *testing.T) {
	c := startFile(t, handlerFile("sync.py"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.handle(ctx, "j", "{}", &sink{})
	require.ErrorIs(t, err, context.Canceled)
	out, _ := c.do("{}")
	require.Empty(t, out.Error)
}

// A generator runs ahead of a slow network by a few items, not by all of them.
func TestBackpressure(t *testing.T) {
	for _, kind := range []string{"def", "async def"} {
		t.Run(kind, func(t *testing.T) {
			log := t.TempDir() + "/log"
			c := start(t, program.Options{Args: program.Command(write(t, `
import runpod, sys
log = open(sys.argv[1], "ab", buffering=0)
`+kind+` handler(job):
    for i in range(1000):
        log.write(b".")
        yield i
runpod.serverless.start({"handler": handler})
`), "", log)})
			produced := func() int { b, _ := os.ReadFile(log); return len(b) }
			ahead := 0
			s := &sink{}
			s.onChunk = func(string) error {
				if n := len(s.chunks); n == 0 || n == 500 {
					time.Sleep(100 * time.Millisecond)
					ahead = max(ahead, produced()-n)
				}
				return nil
			}
			_, err := c.handle(t.Context(), "j", "{}", s)
			require.NoError(t, err)
			require.Len(t, s.chunks, 1000)
			require.LessOrEqual(t, ahead, 12)
		})
	}
}

func TestSinkRefuses(t *testing.T) {
	refusal := errors.New("the job is over")
	for _, file := range []string{"generator.py", "async_generator.py"} {
		t.Run(file, func(t *testing.T) {
			c := startFile(t, handlerFile(file))
			n := 0
			s := &sink{onChunk: func(string) error {
				if n++; n > 3 {
					return refusal
				}
				return nil
			}}
			_, err := c.handle(t.Context(), "j", `{"count":100000}`, s)
			require.ErrorIs(t, err, refusal)
			require.Len(t, s.chunks, 3)
			out, _ := c.do(`{"count":1}`)
			require.Equal(t, "[]", string(out.Output))
		})
	}
}

func TestProgress(t *testing.T) {
	c := startFile(t, write(t, `
import runpod, threading, time
def late(job):
    time.sleep(0.3)
    runpod.serverless.progress_update(job, "late")
def handler(job):
    threading.Thread(target=late, args=(job,)).start()
    for i in range(20): runpod.serverless.progress_update(job, i)
    runpod.serverless.progress_update(job, {"score": float("nan")})
    return job["input"]
runpod.serverless.start({"handler": handler})
`))
	out, s := c.do(`{}`)
	require.Equal(t, `{}`, string(out.Output))
	require.Len(t, s.progress, 20)
	require.Equal(t, "0", s.progress[0])
	require.Equal(t, "19", s.progress[19])
	c.shows("progress_update was dropped: the job has ended")
	require.Zero(t, s.late)
	c.shows("progress_update was dropped. progress.score: NaN is not valid JSON")
}

// Every key of the job reaches the handler, as do the ids of the worker and its endpoint.
func TestJobContext(t *testing.T) {
	t.Setenv("RUNPOD_ENDPOINT_ID", "endpoint-1")
	c := start(t, program.Options{WorkerID: "worker-1", Args: program.Command(write(t, `
import os, runpod
def handler(job):
    runpod.RunPodLogger().info("seen", job["id"])
    return [job, os.environ["RUNPOD_POD_ID"], os.environ["RUNPOD_ENDPOINT_ID"]]
runpod.serverless.start({"handler": handler})
`), "")})
	raw := `{"id":"j-1","input":{"a":"é","big":12345678901234567890,"f":1.50},"webhook":"http://x","batchId":"b-1","x-new":{"a":[1,null]}}`
	job, err := protocol.ParseJob([]byte(raw))
	require.NoError(t, err)
	out, err := c.Handle(t.Context(), job, &sink{})
	require.NoError(t, err)
	require.JSONEq(t, `[`+raw+`,"worker-1","endpoint-1"]`, string(out.Output))
	c.shows(`{"requestId": "j-1", "message": "[batchId=b-1] seen", "level": "INFO"}`)
}

// The lines that a handler logs name the batch of their job, and of no other.
func TestLogNamesTheJobAndItsBatch(t *testing.T) {
	tests := []struct {
		name, handler string
		threads       int
	}{
		{"sync", "def handler(job): log.info('at work'); return 1", 0},
		{"generator", "def handler(job):\n    yield 1\n    log.info('at work')", 0},
		{"async", "async def handler(job): await asyncio.sleep(0); log.info('at work')", 0},
		{"async generator", "async def handler(job):\n    yield 1\n    log.info('at work')", 0},
		{"async after all", "async def work(): log.info('at work')\ndef handler(job): return work()", 0},
		{"threads", "def handler(job): log.info('at work'); return 1", 2},
		{"threads, async after all", "async def work(): log.info('at work')\ndef handler(job): return work()", 2},
		{"exception", "def handler(job): log.info('at work'); raise ValueError", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, program.Options{SyncThreads: tt.threads, Args: program.Command(write(t, `
import asyncio, runpod
log = runpod.RunPodLogger()
`+tt.handler+`
runpod.serverless.start({"handler": handler})
log.info("start returned")
`), "")})
			for _, batch := range []string{`,"batchId":"b-1"`, "", `,"batchId":"b-2"`} {
				job, err := protocol.ParseJob([]byte(`{"id":"j","input":{}` + batch + `}`))
				require.NoError(t, err)
				_, err = c.Handle(t.Context(), job, &sink{})
				require.NoError(t, err)
			}
			c.stop()
			var lines []string
			for line := range strings.Lines(c.out.String()) {
				if line = strings.TrimSpace(line); strings.HasSuffix(line, "at work") || strings.HasSuffix(line, "start returned") {
					lines = append(lines, strings.TrimPrefix(line, "INFO   | "))
				}
			}
			require.Equal(t, []string{"j | [batchId=b-1] at work", "j | at work", "j | [batchId=b-2] at work", "start returned"}, lines)
		})
	}
}

func TestBadInputCostsOnlyItsJob(t *testing.T) {
	c := startFile(t, write(t, `
import runpod
runpod.serverless.start({"handler": lambda job: job["input"]})
`))
	for _, tt := range []struct{ name, raw, output, err string }{
		{"invalid UTF-8", "{\"id\":\"j\",\"input\":\"a\xff\"}", `"a�"`, ""},
		{"lone surrogate", `{"id":"j","input":"\ud800"}`, "", "output: lone surrogate"},
		{"very deep", `{"id":"j","input":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`, "", "recursion"},
		{"large", `{"id":"j","input":"` + strings.Repeat("x", 20_000_000) + `"}`, `"` + strings.Repeat("x", 20_000_000) + `"`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := c.Handle(t.Context(), protocol.Job{ID: "j", Raw: []byte(tt.raw)}, &sink{})
			require.NoError(t, err)
			out = whole(t, out)
			require.Contains(t, out.Error, tt.err)
			if tt.output != string(out.Output) { // require would print all of it
				t.Errorf("output %.100s", out.Output)
			}
		})
	}
}

func TestConcurrency(t *testing.T) {
	t.Setenv("WANTED", "2 None 0 -1 'x' 1.5 True 4.0 1e9 1/0")
	c := startFile(t, handlerFile("concurrency_modifier.py"))
	require.True(t, c.ready.Modifier)
	for _, tt := range []struct {
		want int
		err  string
	}{
		{2, ""},
		{0, "concurrency_modifier returned null: want a whole number, at least 1"},
		{0, "returned 0"},
		{0, "returned -1"},
		{0, "returned x"},
		{0, "returned 1.5"},
		{0, "returned true"},
		{4, ""},
		{1000000000, ""},
		{0, "concurrency_modifier raised ZeroDivisionError: division by zero"},
	} {
		n, err := c.Concurrency(t.Context(), 1)
		require.Equal(t, tt.want, n)
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err)
		}
	}

	t.Run("of a sync handler, which is busy", func(t *testing.T) {
		c := startFile(t, write(t, `
import runpod, time
def handler(job): time.sleep(1)
runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda n: n + 1})
`))
		go func() { _, _ = c.handle(t.Context(), "j", "{}", &sink{}) }()
		ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		n, err := c.Concurrency(ctx, 7)
		require.NoError(t, err)
		require.Equal(t, 8, n)
	})
	t.Run("that raises what has no text", func(t *testing.T) {
		for _, kind := range []string{"def", "async def"} {
			c := startFile(t, write(t, `
import runpod
class Bad(Exception):
    def __str__(self): raise ValueError("no")
def modifier(n): raise Bad
@runpod.serverless.register_fitness_check
def check(): raise Bad
`+kind+` handler(job): return "served"
runpod.serverless.start({"handler": handler, "concurrency_modifier": modifier})
`))
			_, err := c.Concurrency(t.Context(), 1)
			require.EqualError(t, err, "concurrency_modifier raised Bad: (its text could not be made)")
			require.EqualError(t, c.Check(t.Context(), 0), "Bad: (its text could not be made)")
			out, _ := c.do("{}")
			require.Equal(t, `"served"`, string(out.Output))
		}
	})
	t.Run("that is no function", func(t *testing.T) {
		c := startFile(t, write(t, `
import runpod
runpod.serverless.start({"handler": lambda job: 1, "concurrency_modifier": 5})
`))
		require.False(t, c.ready.Modifier)
		c.shows("concurrency_modifier is not a function: 5; ignored")
	})
}

func TestChecks(t *testing.T) {
	for name, file := range map[string]string{
		"sync": handlerFile("checks.py"),
		"async": write(t, `
import asyncio, runpod
@runpod.serverless.register_fitness_check
def check_model(): pass
@runpod.serverless.register_fitness_check
async def check_service():
    await asyncio.sleep(0)
    raise RuntimeError("the service is down")
async def handler(job): return "served"
runpod.serverless.start({"handler": handler})
`),
	} {
		t.Run(name, func(t *testing.T) {
			c := startFile(t, file)
			require.Equal(t, []string{"check_model", "check_service"}, c.ready.Checks)
			require.NoError(t, c.Check(t.Context(), 0))
			var failed *program.CheckError
			require.ErrorAs(t, c.Check(t.Context(), 1), &failed)
			require.Equal(t, "RuntimeError: the service is down", failed.Error())
			out, _ := c.do("{}")
			require.Equal(t, `"served"`, string(out.Output))
		})
	}
}
