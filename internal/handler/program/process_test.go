package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/proc"
)

const hello = `
import runpod
runpod.serverless.start({"handler": lambda job: "hello"})
`

// However deep the program is below shells and virtual environments, it finds its way here.
func TestCommands(t *testing.T) {
	file := write(t, hello)
	venv := filepath.Join(t.TempDir(), "venv")
	require.NoError(t, exec.Command("python3", "-m", "venv", "--without-pip", venv).Run())
	tests := []struct {
		name string
		args []string
	}{
		{"python", []string{"python3", "-u", file}},
		{"buffered", []string{"python3", file}},
		{"bash", []string{"bash", "-c", "python3 -u " + file}},
		{"bash with more commands", []string{"bash", "-c", "true; (cd / && python3 " + file + "); echo done"}},
		{"exec", []string{"sh", "-c", "exec python3 -u " + file}},
		{"venv", []string{filepath.Join(venv, "bin", "python"), file}},
		{"activated venv", []string{"bash", "-c", ". " + venv + "/bin/activate && python " + file}},
		{"python -c", []string{"python3", "-c", hello}},
		{"python -m", []string{"sh", "-c", "cd " + filepath.Dir(file) + " && python3 -m handler"}},
		{"python from python", []string{"python3", "-c", "import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]])", file}},
		{"start as a thread", []string{"python3", "-c", "import _thread, runpod, time\n_thread.start_new_thread(runpod.serverless.start, ({'handler': lambda job: 'hello'},))\ntime.sleep(60)"}},
		{"no arguments", []string{"python3", "-c", "import sys; sys.argv = []" + hello}},
		{"strange arguments", []string{"python3", "-c", "import pathlib, sys; sys.argv = [pathlib.Path('h.py'), 1, None]" + hello}},
		{"start on a thread", []string{"python3", "-c", "import threading; t = threading.Thread(target=exec, args=(" + string(quote(t, hello)) + ",)); t.start(); t.join()"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, program.Options{Args: tt.args})
			for range 2 {
				out, _ := c.do(`{}`)
				require.Equal(t, `"hello"`, string(out.Output))
			}
		})
	}
}

// Some versions of Python start no thread any more while they end. Then the program's end says so.
func TestStartAtExit(t *testing.T) {
	c := startFile(t, write(t, "import atexit, runpod\natexit.register(runpod.serverless.start, {'handler': lambda job: 'hello'})"))
	out, err := c.handle(t.Context(), "j", "{}", &sink{})
	if err != nil {
		require.ErrorContains(t, err, "can't create new thread at interpreter shutdown")
		return
	}
	require.Equal(t, `"hello"`, string(out.Output))
}

func quote(t *testing.T, text string) []byte {
	t.Helper()
	b, err := json.Marshal(text)
	require.NoError(t, err)
	return b
}

// What a script sees of its process is the same with python itself, with the shim, and with the
// launcher for files without start().
func TestProcessIsAsEver(t *testing.T) {
	const facts = `
import json, os, sys
def facts():
    main = sys.modules["__main__"]
    return {
        "argv": sys.argv, "path0": sys.path[0], "cwd": os.getcwd(), "name": __name__,
        "file": __file__, "code": facts.__code__.co_filename, "spec": repr(__spec__),
        "loader": type(__loader__).__name__, "main": main.facts is facts,
        "globals": sorted(k for k in globals() if k.startswith("__")), "flags": __import__("__future__").annotations.compiler_flag & facts.__code__.co_flags,
        "threads": len(__import__("threading").enumerate()),
    }
before = facts()
def handler(job):
    import inspect
    assert inspect.getsource(facts).startswith("def facts")
    return before
`
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plain.py": facts + "print(json.dumps(before))", "bare.py": facts,
		"start.py": facts + "import runpod; runpod.serverless.start({'handler': handler})",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	args := []string{"--epochs", "3", "a b", "-x"}
	plain := exec.Command("python3", append([]string{"-u", "plain.py"}, args...)...)
	plain.Dir = dir
	want, err := plain.Output()
	require.NoError(t, err)

	for spec, file := range map[string]string{"start.py": "start.py", "bare.py:handler": "bare.py"} {
		t.Run(spec, func(t *testing.T) {
			c := start(t, program.Options{Args: program.Command(spec, "", args...), Dir: dir})
			require.Contains(t, c.ready.Name, file)
			out, _ := c.do(`{}`)
			require.Empty(t, out.Error)
			require.JSONEq(t, strings.ReplaceAll(string(want), "plain.py", file), string(out.Output))
		})
	}
}

func TestFunctionOfAFile(t *testing.T) {
	t.Run("served", func(t *testing.T) {
		c := startFile(t, handlerFile("function.py:handler"))
		out, _ := c.do(`{}`)
		require.JSONEq(t, `{"main":"__main__","hello":"nobody"}`, string(out.Output))
	})
	t.Run("missing", func(t *testing.T) {
		o, out := options(t, program.Options{Args: program.Command(handlerFile("function.py:nope"), "")})
		_, err := program.New(o).Start(t.Context())
		require.Error(t, err)
		require.Contains(t, out.String(), "has no function 'nope'; it has: handler")
	})
	t.Run("no file", func(t *testing.T) {
		o, out := options(t, program.Options{Args: program.Command("nope.py:f", "")})
		_, err := program.New(o).Start(t.Context())
		require.Error(t, err)
		require.Contains(t, out.String(), "nope.py: No such file or directory")
	})
	t.Run("missing, in a file that calls start", func(t *testing.T) {
		o, out := options(t, program.Options{Args: program.Command(write(t, "def other(job): pass\n"+hello)+":nope", "")})
		_, err := program.New(o).Start(t.Context())
		require.ErrorContains(t, err, "exit code 1")
		require.Contains(t, out.String(), "handler.py has no function 'nope'; it has: other\n")
		require.Equal(t, 1, strings.Count(out.String(), "\n"), "one line: %s", out)
	})
	for _, tt := range []struct{ name, function, text, output string }{
		{"start has another handler", "other", "def other(job): pass\n" + hello, `"hello"`},
		{"start has the same handler", "same", "import runpod\ndef same(job): return 'same'\nrunpod.serverless.start({'handler': same})", `"same"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := startFile(t, write(t, tt.text)+":"+tt.function)
			out, _ := c.do(`{}`)
			require.Equal(t, tt.output, string(out.Output))
			c.stop()
			require.NotContains(t, c.out.String(), "again")
			warned := strings.Contains(c.out.String(), "calls start() itself: its own handler is served, not "+tt.function)
			require.Equal(t, tt.function == "other", warned, c.out)
		})
	}
}

// Children of the handler are its own business: they cannot disturb the job.
func TestChildProcesses(t *testing.T) {
	tests := []struct {
		name, text, output string
		progress           []string
		shown              string
	}{
		{"spawn, unguarded", `
import multiprocessing, runpod
def work(x): return x * 2
def handler(job):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        return pool.map(work, [1, 2, 3])
runpod.serverless.start({"handler": handler})
`, `[2,4,6]`, nil, "was called again below the same program"},
		{"fork pool", `
import multiprocessing, runpod
def work(x): return x * 2
def handler(job):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(work, [1, 2, 3])
runpod.serverless.start({"handler": handler})
`, `[2,4,6]`, nil, ""},
		{"progress from a fork", `
import multiprocessing, runpod
def work(job): runpod.serverless.progress_update(job, {"from": "fork"})
def handler(job):
    p = multiprocessing.get_context("fork").Process(target=work, args=(job,)); p.start(); p.join()
    runpod.serverless.progress_update(job, "parent")
    return p.exitcode
runpod.serverless.start({"handler": handler})
`, `0`, []string{`{"from":"fork"}`, `"parent"`}, ""},
		{"progress from a spawned child", `
import multiprocessing, runpod
def work(job): runpod.serverless.progress_update(job, {"from": "spawn"})
def handler(job):
    p = multiprocessing.get_context("spawn").Process(target=work, args=(job,)); p.start(); p.join()
    return p.exitcode
if __name__ == "__main__":
    runpod.serverless.start({"handler": handler})
`, `0`, []string{`{"from":"spawn"}`}, ""},
		{"a fork that returns", `
import os, runpod
def handler(job):
    pid = os.fork()
    if pid == 0:
        return "child"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
runpod.serverless.start({"handler": handler})
`, `0`, nil, "A forked process came back from the handler"},
		{"a fork that returns, async", `
import os, runpod
async def handler(job):
    pid = os.fork()
    if pid == 0:
        return "child"
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
runpod.serverless.start({"handler": handler})
`, `0`, nil, "A forked process came back from the handler"},
		{"a fork that is terminated", `
import multiprocessing, runpod, time
def handler(job):
    p = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    p.start(); p.terminate(); p.join()
    return p.exitcode
runpod.serverless.start({"handler": handler})
`, `-15`, nil, ""},
		{"subprocess is terminated", `
import subprocess, runpod
def handler(job):
    p = subprocess.Popen(["sleep", "60"])
    p.terminate()
    return p.wait()
runpod.serverless.start({"handler": handler})
`, `-15`, nil, ""},
		{"pickle of __main__", `
import pickle, runpod
class Thing: pass
def handler(job):
    return [type(pickle.loads(pickle.dumps(Thing()))).__module__, pickle.loads(pickle.dumps(handler)) is handler]
runpod.serverless.start({"handler": handler})
`, `["__main__",true]`, nil, ""},
		{"asyncio.run inside", `
import asyncio, runpod
async def work(): return "ran"
def handler(job): return asyncio.run(work())
runpod.serverless.start({"handler": handler})
`, `"ran"`, nil, ""},
		{"main thread, no loop", `
import asyncio, runpod, threading
def handler(job):
    try: asyncio.get_running_loop(); loop = True
    except RuntimeError: loop = False
    return [threading.current_thread() is threading.main_thread(), loop]
runpod.serverless.start({"handler": handler})
`, `[true,false]`, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := startFile(t, write(t, tt.text))
			for range 2 {
				out, s := c.do(`{}`)
				require.Empty(t, out.Error)
				require.Equal(t, tt.output, string(out.Output))
				require.Equal(t, tt.progress, s.progress)
			}
			c.shows(tt.shown)
		})
	}
}

// Nothing that the handler started outlives the program, wherever it went.
func TestDaemonsEndWithTheProgram(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("only Linux shows the environment of a process")
	}
	c := startFile(t, write(t, `
import subprocess, runpod
def handler(job):
    return [subprocess.Popen(["sleep", "60"], start_new_session=new).pid for new in (False, True)]
runpod.serverless.start({"handler": handler})
`))
	out, _ := c.do(`{}`)
	var pids []int
	require.NoError(t, json.Unmarshal(out.Output, &pids))
	for _, pid := range pids {
		require.True(t, proc.Alive(pid))
	}
	c.stop()
	for _, pid := range pids {
		require.False(t, proc.Alive(pid))
	}
}

// A second start() returns at once, so code after it runs; so does code after the first at its end.
func TestStartReturns(t *testing.T) {
	c := startFile(t, write(t, `
import atexit, runpod, subprocess, sys
atexit.register(print, "atexit ran", flush=True)
if "child" not in sys.argv:
    def handler(job):
        return subprocess.run([sys.executable, __file__, "child"], stdout=subprocess.PIPE, text=True).stdout
    runpod.serverless.start({"handler": handler})
    print("start returned", flush=True)
else:
    runpod.serverless.start({"handler": print})
    print("second start returned")
`))
	out, _ := c.do(`{}`)
	require.Contains(t, string(out.Output), "was called again")
	require.Contains(t, string(out.Output), "second start returned")
	c.stop()
	c.shows("start returned\natexit ran\n")
	<-c.Exited()
	var exit *program.ExitError
	require.ErrorAs(t, c.Err(), &exit)
	require.Zero(t, exit.State.Code, exit.State)
}

// Prints go to stdout, wherever that points, and never into the frames.
func TestStdioGames(t *testing.T) {
	for _, tt := range []struct{ name, games string }{
		{"prints", `print("x" * 100000); sys.stderr.write("y" * 100000)`},
		{"close stdout", `os.close(1)`},
		{"close all three", `[os.close(n) for n in range(3)]`},
		{"dup2", `os.dup2(os.open("/dev/null", os.O_RDWR), 1); os.dup2(1, 0); os.dup2(1, 2)`},
		{"close the file object", `sys.stdout.close(); sys.stderr.close()`},
		{"none", `sys.stdout = sys.stderr = None`},
		{"fill low descriptors", `[os.open("/dev/null", 0) for _ in range(40)]`},
	} {
		for _, where := range []string{"before", "in the handler"} {
			t.Run(tt.name+" "+where, func(t *testing.T) {
				before, inside := tt.games, "pass"
				if where != "before" {
					before, inside = "pass", tt.games
				}
				c := startFile(t, write(t, `
import os, runpod, sys
done = []
def games():
    `+inside+`
`+before+`
def handler(job):
    if not done: done.append(1); games()
    runpod.RunPodLogger().info("a line")
    try: print("printed"); os.write(1, b"raw")
    except (OSError, ValueError): pass
    return job["input"]
runpod.serverless.start({"handler": handler})
`))
				for range 3 {
					out, _ := c.do(`{"n":1}`)
					require.Empty(t, out.Error)
					require.Equal(t, `{"n":1}`, string(out.Output))
				}
			})
		}
	}
}

// What a program does to the socket module is for its own sockets.
func TestSocketGames(t *testing.T) {
	for _, tt := range []struct{ name, games string }{
		{"default timeout", "import socket; socket.setdefaulttimeout(0.05)"},
		{"default without blocking", "import socket; socket.setdefaulttimeout(0)"},
		{"another socket class", `
import socket
class Hasty(socket.socket):
    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.settimeout(0.05)
socket.socket = Hasty`},
	} {
		for _, kind := range []string{"def", "async def"} {
			t.Run(tt.name+", "+kind, func(t *testing.T) {
				t.Parallel()
				c := startFile(t, write(t, tt.games+`
import multiprocessing, time, runpod
def child(job): runpod.serverless.progress_update(job, "from a child")
`+kind+` handler(job):
    if job["input"]["fork"]:
        p = multiprocessing.get_context("fork").Process(target=child, args=(job,)); p.start(); p.join()
    time.sleep(job["input"]["seconds"])
    return "x" * 5_000_000
runpod.serverless.start({"handler": handler})
`))
				// The control connection is idle while the handler sleeps, and the jobs' own between them.
				for _, input := range []string{`{"seconds":0.3,"fork":true}`, `{"seconds":0,"fork":false}`} {
					out, s := c.do(input)
					require.Empty(t, out.Error)
					require.Len(t, string(out.Output), 5_000_002)
					require.Equal(t, strings.Contains(input, "true"), len(s.progress) == 1)
				}
			})
		}
	}
}

// The worker decides when the program stops: a TERM or INT that reaches it is not its business.
func TestSignalsWhileServing(t *testing.T) {
	c := startFile(t, write(t, `
import os, runpod, signal, time
def handler(job):
    os.kill(os.getpid(), signal.SIGTERM); os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)
    return "alive"
runpod.serverless.start({"handler": handler})
`))
	out, _ := c.do(`{}`)
	require.Equal(t, `"alive"`, string(out.Output))
	begin := time.Now()
	c.stop()
	require.Less(t, time.Since(begin), 5*time.Second)
}

// The program finds its way back from wherever it runs, whatever the temporary directory is called.
func TestTemporaryDirectories(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	for _, tt := range []struct{ name, dir string }{
		{"relative", "tmp"},
		{"relative, up", "../" + filepath.Base(base) + "/tmp"},
		{"with a colon", base + "/a:b"},
		{"with a space", base + "/a b"},
		{"too long", base + "/" + strings.Repeat("x", 100)},
		{"absent", base + "/absent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name != "absent" {
				require.NoError(t, os.MkdirAll(tt.dir, 0o700))
			}
			t.Setenv("TMPDIR", tt.dir)
			c := start(t, program.Options{Args: []string{"python3", "-c", hello}, Dir: "/"})
			out, _ := c.do("{}")
			require.Equal(t, `"hello"`, string(out.Output))
		})
	}
}

// Nothing of the shim is left on the disk, and nothing was compiled beside it.
func TestPrivateDirectory(t *testing.T) {
	c := startFile(t, write(t, `
import os, runpod
def handler(job):
    shim = os.path.dirname(os.path.dirname(runpod.__file__))
    found = [os.path.join(d, f) for d, _, files in os.walk(shim) for f in files if f.endswith(".pyc")]
    top = os.path.dirname(shim)
    return [top, oct(os.stat(top).st_mode & 0o777), found, os.environ["PYTHONPATH"].split(":")[0] == shim]
runpod.serverless.start({"handler": handler})
`))
	out, _ := c.do(`{}`)
	var got []any
	require.NoError(t, json.Unmarshal(out.Output, &got))
	require.Equal(t, []any{"0o700", []any{}, true}, got[1:])
	dir, ok := got[0].(string)
	require.True(t, ok)
	require.DirExists(t, dir)
	c.stop()
	require.NoDirExists(t, dir)
}
