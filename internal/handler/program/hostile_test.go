package program_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
)

// A program that speaks the protocol by hand, and badly. It says hello, then does its worst when a
// job comes.
const raw = `
import os, socket, struct, sys, time
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["RUNPODCTL_WORKER_SOCKET"]); return s
def frame(kind, number=0, payload=b""): return struct.pack("!BII", kind, number, len(payload)) + payload
def hello():
    global control, data
    control = connect(); control.sendall(frame(48, 1, b'{"name":"raw","kind":"async"}')); control.recv(1000)
    data = connect(); data.sendall(frame(16))
`

func TestHostilePrograms(t *testing.T) {
	tests := []struct{ name, worst, err string }{
		{"garbage", `data.sendall(b"Traceback (most recent call last):\n")`, "it broke the frame protocol: a frame of"},
		{"a job that is not there", `data.sendall(frame(19, 99, b"\0" * 5))`, "job number 99, which does not run"},
		{"an unknown type", `data.sendall(frame(77, 1))`, "an unknown frame type 77"},
		{"a cut DONE", `data.sendall(frame(19, 1, b"\0"))`, "a DONE frame without its head"},
		{"chunks without credit", `data.sendall(frame(17, 1, b"1") * 100)`, "more items than it had credit for"},
		{"two ends", `data.sendall(frame(19, 1, b"\x04\0\0\0\0{}") * 2)`, ""},
		{"exit", `os._exit(3)`, "the program ended (exit code 3)"},
		{"kill", `os.kill(os.getpid(), 9)`, "killed by SIGKILL, likely out of memory"},
		{"crash", `import faulthandler; faulthandler.disable(); os.abort()`, "killed by SIGABRT"},
		{"close the data connection", `data.close()`, "it stopped to take jobs and went on running"},
		{"close control", `control.close()`, "it stopped to take jobs and went on running"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := start(t, program.Options{Args: []string{"python3", "-c", raw + "hello()\ndata.recv(1000)\n" + tt.worst + "\ntime.sleep(60)"}})
			s := &sink{onChunk: func(string) error { time.Sleep(20 * time.Millisecond); return nil }}
			_, err := c.handle(t.Context(), "j", "{}", s)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
			} else {
				require.NoError(t, err)
			}
			<-c.Exited()
			require.Error(t, c.Err())
			_, err = c.handle(t.Context(), "j2", "{}", s)
			require.ErrorIs(t, err, c.Err())
		})
	}
}

// The end of a program is told by how it ended, whatever the connections look like then.
func TestTrueEnd(t *testing.T) {
	const (
		served = "\nimport runpod\nrunpod.serverless.start({'handler': handler})"
		script = "import os\ndef handler(job): os._exit(3)" + served
	)
	tests := []struct {
		name string
		args []string
		end  string
		tail string
	}{
		{"frames unread", []string{"python3", "-c", raw + "hello(); data.recv(1); os._exit(3)"}, "the program ended (exit code 3)", ""},
		{"frames unread, killed", []string{"python3", "-c", raw + "hello(); data.recv(1); os.kill(os.getpid(), 9)"}, "the program ended (killed by SIGKILL, likely out of memory)", ""},
		{"half a frame", []string{"python3", "-c", raw + `hello(); data.recv(1); data.sendall(frame(19, 1, b"0123456789")[:12]); os._exit(7)`}, "the program ended (exit code 7)", ""},
		{"half a header", []string{"python3", "-c", raw + `hello(); data.recv(1); data.sendall(frame(19, 1)[:3]); os._exit(7)`}, "the program ended (exit code 7)", ""},
		{"half a frame on control", []string{"python3", "-c", raw + `hello(); data.recv(1); control.sendall(frame(49, 1, b"{}")[:-1]); os._exit(7)`}, "the program ended (exit code 7)", ""},
		{"start in a loop, async", []string{"python3", "-c", `
import asyncio, runpod
async def handler(job): pass
async def main(): runpod.serverless.start({"handler": handler})
asyncio.run(main())`}, "the program ended (exit code 1)", "asyncio.run() cannot be called from a running event loop"},
		{"no excepthook", []string{"python3", "-c", "import sys\nsys.excepthook = None\ndef handler(job): pass" + served}, "the program ended (exit code 1)", "RuntimeError: sys.excepthook is None"},
		{"a script goes on", []string{"bash", "-c", `sleep 60 & python3 -c "$0"; sleep 60`, script}, "the program ended (killed by SIGTERM) because the Python process that took the jobs is gone", ""},
		{"a script does not wait", []string{"python3", "-c", "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(60)", script}, "the program ended (killed by SIGTERM) because the Python process that took the jobs is gone", ""},
		{"a script ends", []string{"bash", "-c", `python3 -c "$0"; echo "tidied up"; exit 9`, script}, "the program ended (exit code 9)", "tidied up"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, out := options(t, program.Options{Args: tt.args})
			p := program.New(o)
			c := &child{p, t, protocol.Ready{}, out}
			defer c.stop()
			if _, err := c.Start(t.Context()); err != nil {
				require.EqualError(t, err, tt.end)
				return // it was gone before it was seen to be ready
			}
			var jobs sync.WaitGroup
			for i := range 3 {
				jobs.Go(func() {
					_, err := c.handle(t.Context(), fmt.Sprint("j", i), `"`+strings.Repeat("x", 300_000)+`"`, &sink{})
					if err == nil || !strings.Contains(err.Error(), tt.end) {
						t.Errorf("the job was told: %v", err)
					}
				})
			}
			jobs.Wait()
			<-c.Exited()
			require.EqualError(t, c.Err(), tt.end)
			require.ErrorContains(t, c.Check(t.Context(), 0), tt.end)
			var exit *program.ExitError
			require.ErrorAs(t, c.Err(), &exit)
			require.Contains(t, exit.Report(), tt.tail)
		})
	}
}

// An alarm that a handler forgot about ends the program, and says so.
func TestSignalHandlerRaises(t *testing.T) {
	c := startFile(t, write(t, `
import runpod, signal
def late(*_): raise TimeoutError("too late")
signal.signal(signal.SIGALRM, late)
def handler(job): signal.setitimer(signal.ITIMER_REAL, 0.2)
runpod.serverless.start({"handler": handler})
`))
	out, _ := c.do("{}")
	require.Equal(t, "null", string(out.Output))
	<-c.Exited()
	var exit *program.ExitError
	require.ErrorAs(t, c.Err(), &exit)
	require.Equal(t, "the program ended (exit code 1)", exit.Error())
	require.Contains(t, exit.Report(), "TimeoutError: too late")
}

// Connections that are not the program's do it no harm.
func TestStrangers(t *testing.T) {
	c := start(t, program.Options{Args: []string{"python3", "-c", raw + `
for junk in (b"", b"GET / HTTP/1.1\r\n\r\n", frame(16), frame(48, 0, b"not json"), frame(51, 99, b"x"), frame(19, 1, b"")):
    s = connect(); s.sendall(junk); s.close()
idle = connect()
import runpod
runpod.serverless.start({"handler": lambda job: "served"})
`}})
	out, _ := c.do("{}")
	require.Equal(t, `"served"`, string(out.Output))
}

func TestDeathReportsTheLastLines(t *testing.T) {
	c := startFile(t, write(t, `
import os, runpod, sys
async def handler(job):
    print("loading weights")
    print("CUDA error: out of memory", file=sys.stderr)
    os.kill(os.getpid(), 9)
runpod.serverless.start({"handler": handler})
`))
	var jobs sync.WaitGroup
	for i := range 3 {
		jobs.Go(func() {
			_, err := c.handle(t.Context(), fmt.Sprint("j", i), "{}", &sink{})
			if err == nil {
				t.Error("no error")
			}
		})
	}
	jobs.Wait()
	<-c.Exited()
	var exit *program.ExitError
	require.ErrorAs(t, c.Err(), &exit)
	require.Contains(t, exit.Report(), "likely out of memory); its last lines:\n")
	require.Contains(t, exit.Tail, "loading weights")
	require.Contains(t, exit.Tail, "CUDA error: out of memory")
}

// A result that was written just before the end counts.
func TestResultBeforeDeath(t *testing.T) {
	c := startFile(t, write(t, `
import os, runpod
from runpod._worker import frames
write = frames.Connection.write
def last(connection, kind, *rest):
    write(connection, kind, *rest)
    if kind == frames.DONE:
        os._exit(5)
frames.Connection.write = last
def handler(job):
    return "x" * 1000000
runpod.serverless.start({"handler": handler})
`))
	out, _ := c.do("{}")
	require.Len(t, string(out.Output), 1000002)
	<-c.Exited()
	var exit *program.ExitError
	require.ErrorAs(t, c.Err(), &exit)
	require.Equal(t, 5, exit.State.Code)
}

func TestStartIsStopped(t *testing.T) {
	o, out := options(t, program.Options{Args: []string{"bash", "-c", "trap '' TERM; sleep 60 & python3 -c 'import time; print(1); time.sleep(60)'"}})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := program.New(o).Start(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, out)
	require.Less(t, time.Since(begin), 10*time.Second)
}

// Who waits in vain learns whether the program ever came here.
func TestStartInVain(t *testing.T) {
	const found, lost = "the program has not called start() yet: ", "python -I and -E, or a script that overwrites PYTHONPATH, hide the worker's runpod package from it: "
	tests := []struct {
		name, want string
		args       []string
	}{
		{"loading", found, []string{"python3", "-c", "import runpod, time; print('waits'); time.sleep(60)"}},
		{"isolated", lost, []string{"python3", "-I", "-c", "import time; print('waits', flush=True); time.sleep(60)"}},
		{"without environment", lost, []string{"python3", "-E", "-c", "import time; print('waits', flush=True); time.sleep(60)"}},
		{"PYTHONPATH overwritten", lost, []string{"bash", "-c", `PYTHONPATH=/x python3 -c "
try: import runpod.version
except ImportError: pass
import time; print('waits'); time.sleep(60)"`}},
		{"no Python at all", lost, []string{"bash", "-c", "echo waits; sleep 60"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, out := options(t, program.Options{Args: tt.args})
			ctx, cancel := context.WithCancelCause(t.Context())
			tired := errors.New("tired of waiting")
			go func() {
				for range 3000 {
					if strings.Contains(out.String(), "waits") {
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				cancel(tired)
			}()
			_, err := program.New(o).Start(ctx)
			require.ErrorIs(t, err, tired)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestStopEndsBusyPrograms(t *testing.T) {
	for _, handler := range []string{
		"import time; time.sleep(60)", "while True: pass", "import subprocess\n    while True: subprocess.run(['sleep', '60'])",
	} {
		t.Run(handler, func(t *testing.T) {
			c := startFile(t, write(t, "import runpod\ndef handler(job):\n    "+handler+"\nrunpod.serverless.start({'handler': handler})\n"))
			failed := make(chan error, 1)
			go func() {
				_, err := c.handle(context.Background(), "j", "{}", &sink{})
				failed <- err
			}()
			time.Sleep(200 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.NoError(t, c.Stop(ctx))
			require.ErrorContains(t, <-failed, "killed by SIGKILL since it did not stop in time")
		})
	}
}
