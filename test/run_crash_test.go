package test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// ways are those in which a handler takes its process down, and what the job's error says of them.
var ways = map[string]string{
	"thread":   "exit code 70",
	"exit":     "exit code 3",
	"leave":    "exit code 0",
	"kill":     "SIGKILL, likely out of memory",
	"segfault": "SIGSEGV",
}

// crash is a job of crash.py that ends the process once its gate is open.
func (g gates) crash(id, way string) string {
	return `{"id":"` + id + `","input":{"dir":` + strconv.Quote(g.dir) + `,"gate":"crash","way":"` + way + `"}}`
}

// HC-09: a job that takes its process down fails with how it ended and its last words, and the program is started again.
func TestHC09CrashOfAJobAlone(t *testing.T) {
	t.Parallel()
	for way, says := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			g.open("crash")
			g.open("next")
			w := runThrough(t, doors["shim"], nil, "crash.py")
			w.Offer(g.crash("j1", way), g.job("next"))
			text := w.result(t, "j1").errorText(t)
			require.Contains(t, text, says)
			require.Contains(t, text, "last words of j1")
			require.Equal(t, `"next"`, string(w.result(t, "next").Output))
			require.True(t, w.alive())
		})
	}
}

// HC-09: those that ran beside it are run once more, each alone, and end well. Whose fault it was shows then.
func TestHC09CrashBesideOthers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ door, way string }{
		"thread": {"shim", "thread"}, "exit": {"shim", "exit"}, "leave": {"shim", "leave"}, "kill": {"shim", "kill"},
		"segfault": {"shim", "segfault"}, "kill behind the gateway": {"gateway", "kill"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			way, says := row.way, ways[row.way]
			w := runThrough(t, append([]string{"--concurrency", "3"}, doors[row.door]...), []string{"CONCURRENCY_MODIFIER=3"}, "crash.py")
			w.Offer(g.job("a"), g.crash("j1", way), g.job("b"))
			g.awaitStarted(3)
			g.open("crash")
			g.awaitStarted(4)
			g.open("a")
			g.open("b")
			require.Equal(t, `"a"`, string(w.result(t, "a").Output))
			require.Equal(t, `"b"`, string(w.result(t, "b").Output))
			require.Contains(t, w.result(t, "j1").errorText(t), says)
			require.Equal(t, 6, g.started(), "each has run twice")
			require.True(t, w.alive())
		})
	}
}

// HC-09: a program that ends before it takes a job ends the worker, with the reason and without a loop.
func TestHC09CrashAtStart(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		program []string
		says    string
	}{
		"exit code":     {[]string{"sh", "-c", "exit 7"}, "exit code 7"},
		"exit code 0":   {[]string{"true"}, "exit code 0"},
		"signal":        {[]string{"sh", "-c", "kill -9 $$"}, "SIGKILL"},
		"failed import": {[]string{python(t), handler(t, "broken.py")}, "no_such_package_anywhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			starts := filepath.Join(t.TempDir(), "starts")
			program := append([]string{"sh", "-c", `echo >> "$0"; "$@"`, starts}, row.program...)
			w := runCommand(t, apidouble.New(t), nil, append([]string{"--"}, program...)...)
			require.Equal(t, 1, w.wait(t), w.stderr)
			require.Contains(t, w.stderr.String()+w.stdout.String(), row.says)
			require.Empty(t, w.Calls(apidouble.Take))
			require.Equal(t, 1, lineCount(starts))
		})
	}
}

// A job that took the program down is not run again, unless --max-crashes allows for more.
func TestRunOfAKnownCrasher(t *testing.T) {
	t.Parallel()
	for _, allowed := range []int{1, 2} {
		t.Run(strconv.Itoa(allowed), func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			g.open("crash")
			w := runThrough(t, []string{"--max-crashes", strconv.Itoa(allowed)}, nil, "crash.py")
			for i := range 3 {
				w.Offer(g.crash("j1", "exit"))
				eventually(t, func() bool { return len(w.results("j1")) > i }, "no result %d", i)
				text := decode[result](t, w.results("j1")[i].Body).errorText(t)
				if i < allowed {
					require.Contains(t, text, "exit code 3")
				} else {
					require.Equal(t, "worker died while running this job", text)
				}
				between := fmt.Sprint("between", i) // shows that the worker has done with the one before
				g.open(between)
				w.Offer(g.job(between))
				w.result(t, between)
			}
			require.Equal(t, allowed+3, g.started())
			require.True(t, w.alive())
		})
	}
}
