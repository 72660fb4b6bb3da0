package test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// JP-01: what a worker knows of its jobs is its own, although two share folder and home: the idle one says so.
func TestJP01WorkersShareNothing(t *testing.T) {
	t.Parallel()
	cwd, home := t.TempDir(), t.TempDir()
	g := newGates(t)
	member := func(id string) *worker {
		d := apidouble.New(t)
		env := append(environment(d, id), "RUNPOD_SKIP_FITNESS_CHECKS=true", "RUNPOD_PING_INTERVAL=1000", "HOME="+home)
		args := []string{binary(t), "run", "--", python(t), "-u", handler(t, "gate.py")}
		return &worker{process: start(t, command{args: args, env: env, dir: cwd}), API: d}
	}
	a, b := member("A"), member("B")
	a.Offer(g.job("ja"))
	g.awaitStarted(1)
	b.awaitTake(t)
	pings := len(b.Calls(apidouble.Ping))
	eventually(t, func() bool { return len(b.Calls(apidouble.Ping)) >= pings+2 }, "no heartbeat")
	require.Equal(t, "0", b.Calls(apidouble.Take)[0].Query.Get("job_in_progress"))
	b.Offer(g.job("jb"))
	g.awaitStarted(2)
	g.open("jb")
	require.Equal(t, `"jb"`, string(b.result(t, "jb").Output))
	for _, ping := range b.Calls(apidouble.Ping) {
		require.NotContains(t, ping.Query.Get("job_id"), "ja")
	}
	g.open("ja")
	require.Equal(t, `"ja"`, string(a.result(t, "ja").Output))
	left, err := os.ReadDir(cwd)
	require.NoError(t, err)
	require.Empty(t, left)
}

// JP-02: a slot is free when its job has ended, whatever the others do.
func TestJP02SlotsAreFreeOneByOne(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	w := runWorker(t, apidouble.New(t), "gate.py", nil, "--concurrency", "3")
	w.Offer(g.job("long"), g.job("b"), g.job("c"), g.job("d"), g.job("e"))
	g.awaitStarted(3)
	g.open("b")
	g.open("c")
	g.awaitStarted(5)
	require.Empty(t, w.results("long"))
	for _, gate := range []string{"d", "e", "long"} {
		g.open(gate)
		w.result(t, gate)
	}
}

// JP-03: a concurrency function that returns nonsense changes nothing, and is neither fatal nor loud.
func TestJP03NonsenseConcurrency(t *testing.T) {
	t.Parallel()
	w := runWorker(t, apidouble.New(t), "modifier.py", nil)
	for i := range 12 {
		id := fmt.Sprint("j", i)
		w.Offer(`{"id":"` + id + `","input":{"items":[]}}`)
		w.result(t, id)
	}
	require.True(t, w.alive())
	takes := w.Calls(apidouble.Take)
	require.LessOrEqual(t, len(takes), 24)
	for _, take := range takes[1:] {
		if size := take.Query.Get("batch_size"); size != "" {
			require.Equal(t, "2", size)
		}
	}
	nonsense := 0
	for _, line := range w.warnings() {
		nonsense += strings.Count(line, "concurrency")
	}
	require.NotZero(t, nonsense)
	require.LessOrEqual(t, len(w.warnings()), 6)
}

// A job that takes longer than --job-timeout fails, its handler is cancelled, and the slot is free for the next.
func TestRunLimitsTheTimeOfAJob(t *testing.T) {
	t.Parallel()
	g := newGates(t)
	w := runWorker(t, apidouble.New(t), "gate.py", nil, "--job-timeout", "1s")
	w.Offer(g.job("slow"), g.job("next"))
	require.Contains(t, w.result(t, "slow").errorText(t), "job timeout: ")
	eventually(t, func() bool { return exists(g.dir + "/slow.cancelled") }, "its handler goes on")
	g.open("next")
	g.awaitStarted(2)
	require.Equal(t, `"next"`, string(w.result(t, "next").Output))
	require.Len(t, w.results("slow"), 1)
}

// A limit that makes no sense is a usage error that names it.
func TestRunRefusesOddFlags(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{
		"--job-timeout=-1s", "--max-crashes=0", "--on-kill=shrug", "--ready=ftp://x", "--grace-period=-1s", "--mode=push", "--ready-timeout=soon",
	} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			w := runCommand(t, apidouble.New(t), nil, flag, "--", "true")
			require.Equal(t, 2, w.wait(t), w.stderr)
			require.Len(t, w.stderr.lines(), 1, w.stderr)
			name, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
			require.Contains(t, w.stderr.String(), name)
		})
	}
}
