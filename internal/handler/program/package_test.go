package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
)

// installed is a Python that has the real runpod package.
func installed(t *testing.T) string {
	t.Helper()
	python := os.Getenv("RUNPODCTL_TEST_PYTHON")
	if python == "" && os.Getenv("CI") == "true" {
		t.Fatal("RUNPODCTL_TEST_PYTHON must name a Python with the runpod package")
	}
	if python == "" {
		t.Skip("RUNPODCTL_TEST_PYTHON names no Python with the runpod package")
	}
	return python
}

// What the shim does not have comes from the installed package when it is asked for.
func TestInstalledPackage(t *testing.T) {
	python := installed(t)
	tests := []struct{ name, expression, want string }{
		{"nothing early", `"requests" in sys.modules or "aiohttp" in sys.modules`, `false`},
		{"start is ours", `"_worker" in dir(runpod)`, `true`},
		{"Endpoint", `runpod.Endpoint.__module__`, `"runpod.endpoint.runner"`},
		{"AsyncioEndpoint", `runpod.AsyncioEndpoint.__module__`, `"runpod.endpoint.asyncio.asyncio_runner"`},
		{"api key is seen", `setattr(runpod, "api_key", "k") or runpod.Endpoint("e").rp_client.api_key`, `"k"`},
		{"get_gpus", `runpod.get_gpus.__module__`, `"runpod.api.ctl_commands"`},
		{"api", `importlib.import_module("runpod.api.graphql").__name__`, `"runpod.api.graphql"`},
		{"error", `runpod.error.__name__`, `"runpod.error"`},
		{"upload", `importlib.import_module("runpod.serverless.utils.rp_upload").upload_file_to_bucket.__name__`, `"upload_file_to_bucket"`},
		{"upload from utils", `importlib.import_module("runpod.serverless.utils").upload_in_memory_object.__name__`, `"upload_in_memory_object"`},
		{"download", `importlib.import_module("runpod.serverless.utils").rp_download.__name__`, `"runpod.serverless.utils.rp_download"`},
		{"VolumeCache is ours", `importlib.import_module("runpod.serverless.utils.rp_volume_cache").__file__.startswith(runpod.__path__[0])`, `true`},
		{"http client", `importlib.import_module("runpod.http_client").SyncClientSession.__name__`, `"SyncClientSession"`},
		{"the logger is ours", `importlib.import_module("runpod.serverless.modules.rp_job").log is runpod.RunPodLogger()`, `true`},
		{"rp_http is ours", `"stand-in" in importlib.import_module("runpod.serverless.modules.rp_http").__doc__.lower()`, `true`},
		{"unknown", `hasattr(runpod, "nonsense") or hasattr(runpod.serverless, "nonsense")`, `false`},
	}
	c := start(t, program.Options{Args: program.Command(write(t, evaluator), python)})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _ := c.do(string(quote(t, tt.expression)))
			require.Empty(t, out.Error)
			require.Equal(t, tt.want, string(out.Output))
		})
	}
}

// Every module of the installed package can be imported in a program that the worker runs.
func TestEveryModuleOfThePackage(t *testing.T) {
	python := installed(t)
	const script = `
import importlib, json, pkgutil, sys, warnings
warnings.simplefilter("ignore")
import runpod
failed, count = {}, 0
for module in pkgutil.walk_packages(runpod.__path__, "runpod.", onerror=lambda name: None):
    if module.name.endswith("__main__"): continue
    count += 1
    try: importlib.import_module(module.name)
    except BaseException as error: failed[module.name] = repr(error)
print(json.dumps([count > 50, failed]))
`
	require.JSONEq(t, `[true,{}]`, runPython(t, python, "", script), "by itself")
	require.JSONEq(t, `[true,{}]`, runPython(t, python, shimDir(t), script))
}

const evaluator = `
import importlib, os, sys, runpod
def handler(job): return eval(job["input"])
runpod.serverless.start({"handler": handler})
`

func TestAbsentPackage(t *testing.T) {
	tests := []struct{ name, expression, want, err string }{
		{"version", `[runpod.__version__, runpod.serverless.runpod_version, runpod.version.__version__]`, `["1.12.0","1.12.0","1.12.0"]`, ""},
		{"api key", `[runpod.api_key, runpod.profile, runpod.endpoint_url_base]`, `[null,"default","https://api.runpod.ai/v2"]`, ""},
		{"all", `[hasattr(runpod.serverless, name) for name in ("start", "progress_update", "register_fitness_check", "log")]`, `[true,true,true,true]`, ""},
		{"unknown", `hasattr(runpod, "nonsense")`, `false`, ""},
		{"Endpoint", `runpod.Endpoint`, "", "pip install runpod"},
		{"from import", `exec("from runpod import Endpoint")`, "", "runpod.endpoint is part of the full runpod package, which is not installed: pip install runpod"},
		{"upload", `exec("from runpod.serverless.utils.rp_upload import upload_image")`, "", "pip install runpod"},
		{"from utils", `exec("from runpod.serverless.utils import upload_file_to_bucket")`, "", "pip install runpod"},
		{"a module of utils", `exec("from runpod.serverless.utils import rp_upload")`, "", "runpod.serverless.utils.rp_upload is part of the full runpod package, which is not installed: pip install runpod"},
		{"VolumeCache", `exec("from runpod.serverless import VolumeCache")`, "null", ""},
		{"try and go on", `exec("try: import runpod.serverless.utils.rp_upload\nexcept ImportError: pass")`, "null", ""},
		{"helpers", `exec("from runpod.serverless.utils import rp_cleanup, rp_cuda, rp_debugger, rp_validator\nfrom runpod.serverless.modules import rp_http, rp_ping, rp_progress, rp_logger")`, "null", ""},
		{"cuda", `importlib.import_module("runpod.serverless.utils.rp_cuda").is_available()`, "false", ""},
	}
	t.Setenv("PATH", pathWithoutGPU(t))
	c := start(t, program.Options{Args: program.Command(write(t, evaluator), "")})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _ := c.do(string(quote(t, tt.expression)))
			require.Contains(t, out.Error, tt.err)
			require.Equal(t, tt.want, string(out.Output))
		})
	}
}

// pathWithoutGPU is a PATH on which python3 is the only program.
func pathWithoutGPU(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	where, err := exec.Command(python, "-c", "import sys; print(sys.executable)").Output()
	require.NoError(t, err)
	dir := t.TempDir()
	script := "#!/bin/sh\nexec " + strings.TrimSpace(string(where)) + ` "$@"` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o700))
	return dir
}

// What the helpers say is what the real package says, word for word.
func TestHelpersAgreeWithThePackage(t *testing.T) {
	python := installed(t)
	const validator = `
import json, sys
from runpod.serverless.utils.rp_validator import validate
schemas = [
    {"a": {"type": str, "required": True}},
    {"a": {"type": float, "required": False, "default": 1.0}, "b": {"type": int, "required": True}},
    {"a": {"type": int, "required": True, "constraints": lambda v: v is not None and v > 3}},
    {"a": {"type": int, "required": False}},
    {"a": {"type": int}},
    {"a": {"type": int, "required": False, "default": 5, "constraints": lambda v: v < 4}},
    {"a": {"type": list, "required": False, "default": None}},
    {"a": '{"required": true, "type": 1}'},
]
inputs = [{}, {"a": "x"}, {"a": 3}, {"a": 7, "b": 1}, {"a": 2.5}, {"a": True}, {"a": None}, {"c": 1}, {"a": [1]}]
out = []
for schema in schemas:
    for value in inputs:
        try: out.append(repr(validate(dict(value), dict(schema))))
        except TypeError: out.append("TypeError")
print(json.dumps(out))
`
	const logger = `
import json, os
from runpod import RunPodLogger
log = RunPodLogger()
assert RunPodLogger() is log
for endpoint in ("", "endpoint-1"):
    os.environ["RUNPOD_ENDPOINT_ID"] = endpoint
    for level in ("NOTSET", "DEBUG", "info", 4, "ERROR"):
        log.set_level(level)
        for say in (log.debug, log.info, log.warn, log.error, log.trace):
            say("plain"); say("with an id", "job-1"); say({"é": 1}, "job-2"); say("x" * 5000)
        log.log("as asked", "WARN", job_id="job-3")
try: log.set_level("nonsense")
except ValueError as error: print(error)
`
	for name, script := range map[string]string{"validator": validator, "logger": logger} {
		t.Run(name, func(t *testing.T) {
			want := strings.Split(runPython(t, python, "", script), "\n")
			got := strings.Split(runPython(t, python, shimDir(t), script), "\n")
			for i, line := range want {
				require.Equal(t, line, got[min(i, len(got)-1)], "line %d", i)
			}
			require.Len(t, got, len(want))
		})
	}
}

func TestLogger(t *testing.T) {
	tests := []struct{ name, env, script, want string }{
		{"text", "", `log.info("a", "j")`, "INFO   | j | a\n"},
		{"json", "RUNPOD_ENDPOINT_ID=e", `log.info("a", "j")`, `{"requestId": "j", "message": "a", "level": "INFO"}` + "\n"},
		{"text asked for", "RUNPOD_ENDPOINT_ID=e RUNPODCTL_WORKER_LOG_FORMAT=text", `log.info("a", "j")`, "INFO   | j | a\n"},
		{"json asked for", "RUNPODCTL_WORKER_LOG_FORMAT=json", `log.info("a", "j")`, `{"requestId": "j", "message": "a", "level": "INFO"}` + "\n"},
		{"secret", "", `log.secret("key", "rpa_ABCDEF")`, "INFO   | key: [REDACTED]\n"},
		{"empty secret", "", `log.secret("key", "")`, "INFO   | key: [REDACTED]\n"},
		{"level", "RUNPOD_LOG_LEVEL=ERROR", `log.info("a"); log.error("b")`, "ERROR  | b\n"},
		{"old name of the level", "RUNPOD_DEBUG_LEVEL=warn", `log.info("a"); log.warn("b")`, "WARN   | b\n"},
		{"usual spelling", "RUNPOD_LOG_LEVEL=WARNING", `log.info("a"); log.warn("b")`, "WARN   | b\n"},
		{"number", "RUNPOD_LOG_LEVEL=5", `log.warn("a"); log.error("b")`, "ERROR  | b\n"},
		{
			"bad level", "RUNPOD_LOG_LEVEL=loud", `log.debug("a")`,
			"WARN   | RUNPOD_LOG_LEVEL=loud is none of NOTSET, TRACE, DEBUG, INFO, WARN, ERROR; using DEBUG\nDEBUG  | a\n",
		},
		{"surrogate", "", `log.info("a\ud800")`, "INFO   | a\\ud800\n"},
	}
	shim := shimDir(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for entry := range strings.FieldsSeq(tt.env) {
				name, value, _ := strings.Cut(entry, "=")
				t.Setenv(name, value)
			}
			got := runPython(t, "python3", shim, "from runpod import RunPodLogger\nlog = RunPodLogger()\n"+tt.script)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestDebugger(t *testing.T) {
	c := start(t, program.Options{Args: program.Command(write(t, `
import runpod
from runpod.serverless.utils.rp_debugger import FunctionTimer, LineTimer
@FunctionTimer
def work(): return 1
def handler(job):
    with LineTimer("line"): work()
    if job["input"] == "fail": raise ValueError()
    return {"a": 1} if job["input"] == {} else [1]
runpod.serverless.start({"handler": handler})
`), "", "--rp_debugger")})
	for _, input := range []string{`"fail"`, `{}`, `{}`, `[]`} {
		out, _ := c.do(input)
		if input != `{}` {
			require.Contains(t, string(out.Output)+out.Error, map[string]string{`"fail"`: "ValueError", `[]`: "[1]"}[input])
			continue
		}
		var got struct {
			Block struct {
				System     map[string]string `json:"system_info"`
				Timestamps []map[string]any  `json:"timestamps"`
				Ready      float64           `json:"ready_delay_ms"`
			} `json:"rp_debugger"`
		}
		require.NoError(t, json.Unmarshal(out.Output, &got))
		require.Len(t, got.Block.Timestamps, 2)
		require.Equal(t, "line", got.Block.Timestamps[0]["name"])
		require.Contains(t, got.Block.Timestamps[0], "duration_ms")
		require.Positive(t, got.Block.Ready)
		for _, key := range []string{"os", "processor", "python_version", "runpod"} {
			require.NotEmpty(t, got.Block.System[key])
		}
	}
}

func TestArguments(t *testing.T) {
	t.Run("of the SDK are taken out", func(t *testing.T) {
		c := start(t, program.Options{Args: program.Command(write(t, `
import runpod, sys
config = {"handler": lambda job: [sys.argv[1:], config["rp_args"]]}
runpod.serverless.start(config)
`), "", "--mine", "1", "--rp_log_level", "ERROR", "--rp_api_port=9000", "x")})
		out, _ := c.do(`{}`)
		require.JSONEq(t, `[["--mine","1","x"],{"rp_log_level":"ERROR","rp_debugger":null,"rp_serve_api":null,"rp_api_port":9000,`+
			`"rp_api_concurrency":1,"rp_api_host":"localhost","test_input":null}]`, string(out.Output))
	})
	tests := []struct {
		name, file string
		args       []string
		code       int
		local      bool
		shown      []string
	}{
		{"serve_api", "sync.py", []string{"--rp_serve_api"}, 2, false, []string{"Use: runpodctl-worker serve -- python"}},
		{"no JSON", "sync.py", []string{"--test_input", "{"}, 2, false, []string{"--test_input is not JSON"}},
		{"sync", "sync.py", []string{"--test_input", `{"input":{"name":"x"}}`}, 0, true, []string{"\n" + `{"output": {"hello": "x"}}` + "\n"}},
		{"async", "async.py", []string{"--test_input", `{"input":{"name":"x"}}`}, 0, true, []string{"\n" + `{"output": {"hello": "x"}}` + "\n"}},
		{"wrapped", "wrapped.py", []string{"--test_input", `{"input":{}}`}, 0, true, []string{`{"output": {"hello": "nobody"}}`}},
		{"generator", "generator.py", []string{"--test_input", `{"input":{"count":20}}`}, 0, true, []string{`{"item": 18}, {"item": 19}]}` + "\n"}},
		{"async generator", "async_generator.py", []string{"--test_input", `{"input":{"count":2}}`}, 0, true, []string{"\n" + `{"output": [{"item": 0}, {"item": 1}]}` + "\n"}},
		{"generator fails", "generator.py", []string{"--test_input", `{"input":{"fail_at":2}}`}, 1, true, []string{`{"item":1}`, `{"output": [{"item": 0}, {"item": 1}], "error": `, "boom"}},
		{"no input", "sync.py", []string{"--test_input", `{}`}, 1, true, []string{"Job has no input parameter. Unable to run."}},
		{"error", "errors.py", []string{"--test_input", `{"input":{"way":"error"}}`}, 1, true, []string{`{"error": "bad input"}`}},
		{"exit", "errors.py", []string{"--test_input", `{"input":{"way":"exit"}}`}, 3, true, nil},
		{"progress", "progress.py", []string{"--test_input", `{"input":{"steps":1}}`}, 0, true, []string{"step 1/1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, out := options(t, program.Options{Args: program.Command(handlerFile(tt.file), "", tt.args...)})
			_, err := program.New(o).Start(t.Context())
			var exit *program.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, tt.code, exit.State.Code, out)
			require.Equal(t, tt.local, exit.Local)
			for _, shown := range tt.shown {
				require.Contains(t, out.String(), shown)
			}
		})
	}
}

func shimDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("shim")
	require.NoError(t, err)
	return dir
}

// runPython runs a script, with the shim if its directory is given, and returns its stdout.
func runPython(t *testing.T, python, shim, script string) string {
	t.Helper()
	cmd := exec.Command(python, "-c", script)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+shim, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%.2000s", out)
	return string(out)
}
