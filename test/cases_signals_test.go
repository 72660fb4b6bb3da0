package test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
	"runpodctl-worker/test/proctree"
)

// SR-05: where the grace period ends, so does everything, whatever it does about signals and wherever it went.
func TestSR05GracePeriodEnds(t *testing.T) {
	t.Parallel()
	const grace = 3 * time.Second
	for name, row := range map[string]struct {
		flags []string
		error string // empty where the job is released
	}{
		"release": {nil, ""},
		"fail":    {[]string{"--on-kill", "fail"}, "the worker was stopped before the job had ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			w := runThrough(t, append([]string{"--grace-period", grace.String()}, row.flags...), []string{"PIDS=" + pids}, "stubborn.py")
			w.Offer(apidouble.Job("j1"))
			eventually(t, func() bool { return lineCount(pids) == 4 }, "not all are there")
			told := time.Now()
			w.signal(t, syscall.SIGTERM)
			require.Equal(t, 3, w.wait(t), w.stderr)
			require.GreaterOrEqual(t, w.end.Sub(told), grace)
			require.Less(t, w.end.Sub(told), grace+soon)
			requireGone(t, pidsIn(t, pids))
			if row.error == "" {
				require.Empty(t, w.results("j1"))
			} else {
				require.Equal(t, row.error, w.result(t, "j1").errorText(t))
			}
		})
	}
}

// SR-07: the second signal cuts short what the first one let go on.
func TestSR07SecondSignal(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags  []string
		failed bool
	}{"release": {nil, false}, "fail": {[]string{"--on-kill", "fail"}, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			w := runThrough(t, row.flags, nil, "gate.py")
			w.Offer(g.job("j1"))
			g.awaitStarted(1)
			w.signal(t, syscall.SIGTERM)
			w.awaitWord(t, "stopping: SIGTERM received; ")
			time.Sleep(50 * time.Millisecond) // or it would be taken for an echo of the first
			w.signal(t, syscall.SIGTERM)
			require.Equal(t, 3, w.wait(t), w.stderr)
			if row.failed {
				require.Contains(t, w.result(t, "j1").errorText(t), "stopped")
			} else {
				require.Empty(t, w.results("j1"))
			}
		})
	}
}

// SR-07: SIGUSR1 drains and nothing else, however often it comes: nothing below the worker hears of it.
func TestSR07DrainOnly(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	heard := filepath.Join(t.TempDir(), "heard")
	// A shell that waits hears of a signal at once.
	script := `trap 'echo >> "$0"' TERM INT USR1; "$@" & while kill -0 $! 2>/dev/null; do wait $!; done`
	w := runCommand(t, apidouble.New(t), nil, "--", "sh", "-c", script, heard, python(t), "-u", handler(t, "gate.py"))
	w.Offer(g.job("j1"))
	g.awaitStarted(1)
	for range 3 {
		w.signal(t, syscall.SIGUSR1)
	}
	w.awaitWord(t, "stopping: SIGUSR1 received; ")
	takes := len(w.Calls(apidouble.Take))
	w.signal(t, syscall.SIGTERM) // is the first of its kind
	w.awaitWord(t, "stopping: SIGTERM received; ")
	w.signal(t, syscall.SIGUSR1)
	w.Offer(g.job("j2"))
	time.Sleep(200 * time.Millisecond) // for what should not come
	require.NoFileExists(t, heard)
	require.NoError(t, syscall.Kill(proctree.Descendants(w.cmd.Process.Pid)[0], syscall.SIGUSR1))
	eventually(t, func() bool { return exists(heard) }, "it would not have heard")
	g.open("j1")
	require.Equal(t, `"j1"`, string(w.result(t, "j1").Output))
	require.Zero(t, w.wait(t), w.stderr)
	require.Len(t, w.Calls(apidouble.Take), takes)
	require.Empty(t, w.results("j2"))
}

// awaitWord waits for a text in the log.
func (p *process) awaitWord(t *testing.T, word string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(p.stderr.String(), word) }, "no %q in the log", word)
}
