package program_test

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

func TestExceptions(t *testing.T) {
	tests := []struct {
		name, file, input, kind, message string
		chunks                           []string
	}{
		{"sync", "errors.py", `{"way":"raise"}`, "<class 'ValueError'>", "boom", nil},
		{"base exception", "errors.py", `{"way":"base"}`, "<class '__main__.Custom'>", "not an Exception", nil},
		{"key error", "errors.py", `{}`, "<class 'KeyError'>", "'way'", nil},
		{"generator at once", "generator.py", `{"fail_at":0}`, "<class 'ValueError'>", "boom", nil},
		{"generator later", "generator.py", `{"fail_at":1}`, "<class 'ValueError'>", "boom", []string{`{"item":0}`}},
		{"async generator at once", "async_generator.py", `{"fail_at":0}`, "<class 'ValueError'>", "boom", nil},
		{"async generator later", "async_generator.py", `{"fail_at":1}`, "<class 'ValueError'>", "boom", []string{`{"item":0}`}},
		{"async", "async.py", `7`, "<class 'AttributeError'>", "'int' object has no attribute 'get'", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("RUNPOD_POD_HOSTNAME", "host-1")
			c := start(t, program.Options{Args: program.Command(handlerFile(tt.file), ""), WorkerID: "worker-1"})
			for range 2 { // the worker lives on
				out, s := c.do(tt.input)
				require.Nil(t, out.Output)
				require.Equal(t, tt.chunks, s.chunks)

				var info protocol.ErrorInfo
				require.NoError(t, json.Unmarshal([]byte(out.Error), &info), out.Error)
				require.Equal(t, tt.kind, info.Type)
				require.Equal(t, tt.message, info.Message)
				require.Contains(t, info.Traceback, "Traceback (most recent call last):\n  File \""+handlerFile(tt.file))
				require.NotContains(t, info.Traceback, "runpod")
				require.Equal(t, "host-1", info.Hostname)
				require.Equal(t, "worker-1", info.WorkerID)
				require.Equal(t, protocol.SDKVersion, info.Version)

				var keys map[string]any
				require.NoError(t, json.Unmarshal([]byte(out.Error), &keys))
				require.Len(t, keys, 6)
			}
			c.shows("Captured Handler Exception")
		})
	}
}

// An exception arrives whatever its own code does, and whatever stands in the place of stdout. The jobs beside it
// go on.
func TestExceptionsOfHostilePrograms(t *testing.T) {
	const printed = "Traceback (most recent call last):\n  File "
	tests := []struct{ name, before, inside, kind, message, trace string }{
		{"stdout takes bytes", "", "sys.stdout = sys.stderr = io.BytesIO(); raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"stdout raises", `
class Bad:
    def write(self, text): raise RuntimeError("no")`, "sys.stdout = sys.stderr = Bad(); raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"stdout calls itself", `
class Bad:
    def write(self, text): self.write(text)`, "sys.stdout = sys.stderr = Bad(); raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"stdout logs", `
class Bad:
    def write(self, text): runpod.RunPodLogger().info(text)`, "sys.stdout = sys.stderr = Bad(); raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"stdout is gone", "", "del sys.stdout, sys.stderr; raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"the logger is broken", "", "runpod.RunPodLogger.log = None; raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"json is broken", "", "json.dumps = json.loads = None; raise ValueError('boom')", "<class 'ValueError'>", "boom", printed},
		{"traceback is broken", "", "traceback.format_exception = None; raise ValueError('boom')", "<class 'ValueError'>", "boom", "(its traceback could not be made)"},
		{"__str__ raises", `
class Bad(Exception):
    def __str__(self): raise KeyboardInterrupt`, "raise Bad", "<class '__main__.Bad'>", "(its text could not be made)", ""},
		{"__str__ is no text", `
class Bad(Exception):
    def __str__(self): return None`, "raise Bad", "<class '__main__.Bad'>", "(its text could not be made)", printed},
		{"__str__ has no end", `
class Bad(Exception):
    def __str__(self): return str(self)`, "raise Bad", "<class '__main__.Bad'>", "(its text could not be made)", printed},
		{"metaclass raises", `
class Meta(type):
    def __repr__(self): raise ValueError("no")
    __name__ = property(__repr__)
class Bad(Exception, metaclass=Meta): pass`, "raise Bad('boom')", "<class '__main__.Bad'>", "boom", ""},
		{"__class__ raises", `
class Bad(Exception):
    @property
    def __class__(self): raise ValueError("no")`, "raise Bad('boom')", "<class '__main__.Bad'>", "boom", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := startFile(t, write(t, `
import asyncio, io, json, runpod, sys, traceback`+tt.before+`
begun = []
async def handler(job):
    if job["input"] == "wait":
        while not begun: await asyncio.sleep(0.01)
        return "untouched"
    try:
        `+tt.inside+`
    finally:
        begun.append(1)
runpod.serverless.start({"handler": handler})
`))
			var neighbour protocol.Outcome
			var err error
			var jobs sync.WaitGroup
			jobs.Go(func() { neighbour, err = c.handle(t.Context(), "neighbour", `"wait"`, &sink{}) })
			out, _ := c.do(`{}`)
			jobs.Wait()
			require.NoError(t, err)
			require.Equal(t, `"untouched"`, string(neighbour.Output))

			var info map[string]string
			require.NoError(t, json.Unmarshal([]byte(out.Error), &info), out.Error)
			require.Len(t, info, 6)
			require.Equal(t, tt.kind, info["error_type"])
			require.Equal(t, tt.message, info["error_message"])
			require.Contains(t, info["error_traceback"], tt.trace)
		})
	}
}

// A call of sys.exit in a handler ends the program, as it always did.
func TestExitInHandler(t *testing.T) {
	for _, file := range []string{"sync", "async", "thread"} {
		t.Run(file, func(t *testing.T) {
			text := `
import sys, runpod
def handler(job): sys.exit(3)
`
			o := program.Options{}
			switch file {
			case "async":
				text = `
import sys, runpod
async def handler(job): sys.exit(3)
`
			case "thread":
				o.SyncThreads = 2
			}
			o.Args = program.Command(write(t, text+"runpod.serverless.start({'handler': handler})\n"), "")
			c := start(t, o)
			_, err := c.handle(t.Context(), "j", "{}", &sink{})
			var exit *program.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 3, exit.State.Code)
			require.False(t, exit.Early)
			<-c.Exited()
			require.ErrorIs(t, c.Err(), exit)
		})
	}
}

func TestEndsBeforeStart(t *testing.T) {
	tests := []struct {
		name, text string
		code       int
		message    string
		shown      string
	}{
		{"import error", "import nonsense", 1, "exit code 1) before it was ready", "ModuleNotFoundError: No module named 'nonsense'"},
		{"import error of its own", "import runpod, nonsense", 1, "exit code 1) before it was ready", "ModuleNotFoundError: No module named 'nonsense'"},
		{
			"isolated", "import os, sys; sys.flags.isolated or os.execv(sys.executable, [sys.executable, '-I', __file__])\nimport runpod", 1,
			"since it did not find runpod: python -I and -E, or a script that overwrites PYTHONPATH, hide", "No module named 'runpod'",
		},
		{"no start", "def handler(job): pass", 0, "or name the function as in --handler handler.py:handler", ""},
		{"no handler", "import runpod; runpod.serverless.start({})", 1, "exit code 1", `start() needs a function under "handler", got None`},
		{"no dict", "import runpod; runpod.serverless.start(print)", 1, "exit code 1", `start() takes a dict, as in start({"handler": handler}), not a builtin_function_or_method`},
		{
			"jobs_fetcher", "import runpod; runpod.serverless.start({'handler': print, 'jobs_fetcher': print})",
			1, "exit code 1", "start(): 'jobs_fetcher' is not supported here",
		},
		{"crash", "import os; os.abort()", -1, "killed by SIGABRT", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, out := options(t, program.Options{Args: program.Command(write(t, tt.text), "")})
			_, err := program.New(o).Start(t.Context())
			var exit *program.ExitError
			require.ErrorAs(t, err, &exit)
			require.True(t, exit.Early)
			require.Equal(t, tt.code, exit.State.Code)
			require.ErrorContains(t, err, tt.message)
			require.Contains(t, out.String(), tt.shown)
			require.Contains(t, exit.Report(), tt.shown)
		})
	}
}

// oops is a sink that goes wrong.
type oops struct{ sink }

func (*oops) Progress(json.RawMessage) { panic("out of order") }

// A mistake in what takes the program's words costs the program, not the worker.
func TestMistakeInTheReader(t *testing.T) {
	c := startFile(t, write(t, `
import runpod, time
def handler(job):
    runpod.serverless.progress_update(job, 1)
    time.sleep(3600)
runpod.serverless.start({"handler": handler})
`))
	_, err := c.Handle(t.Context(), protocol.Job{ID: "j", Raw: json.RawMessage(`{"id":"j","input":1}`)}, &oops{})
	require.ErrorContains(t, err, "because its words could not be understood: a mistake in this program: out of order")
	<-c.Exited()
}
