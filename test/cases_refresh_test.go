package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// SR-08: a job that asks for a fresh worker, well or failed, ends the taking; those beside it end first, and the last
// post says that the worker is to be replaced.
func TestSR08RefreshAfterAJob(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ door, failure string }{
		"done":                    {"shim", ""},
		"failed":                  {"shim", `,"error":"as told"`},
		"done behind the gateway": {"gateway", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			w := runThrough(t, append([]string{"--concurrency", "2"}, doors[row.door]...), []string{"CONCURRENCY_MODIFIER=2"}, "gate.py")
			w.Offer(`{"id":"A","input":{"dir":`+strconv.Quote(g.dir)+`,"gate":"A","refresh":true`+row.failure+`}}`, g.job("B"))
			g.awaitStarted(2)
			g.open("A")
			w.result(t, "A")
			time.Sleep(time.Second) // longer than the linger: nothing is open any more
			takes := len(w.Calls(apidouble.Take))
			w.Offer(g.job("C"))
			g.open("B")
			require.Zero(t, w.wait(t), w.stderr)

			require.Equal(t, row.failure != "", len(w.result(t, "A").Error) > 0)
			require.Equal(t, `"B"`, string(w.result(t, "B").Output))
			posts := w.Accepted(apidouble.Done)
			require.Len(t, posts, 2)
			require.False(t, decode[result](t, posts[0].Body).StopPod)
			require.True(t, decode[result](t, posts[1].Body).StopPod, "the last post")
			require.Len(t, w.Calls(apidouble.Take), takes)
			require.Equal(t, 1, w.Waiting())
		})
	}
}

// SR-09: one job is stopped, the others are not, and nothing is posted for it. Answers that make no sense stop nothing.
func TestSR09StopOfOneJob(t *testing.T) {
	t.Parallel()
	for door, flags := range doors {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			g := newGates(t)
			w := runThrough(t, append([]string{"--concurrency", "3"}, flags...), []string{"CONCURRENCY_MODIFIER=3"}, "gate.py")
			w.Offer(g.job("A"), g.job("B"), g.job("C"))
			g.awaitStarted(3)
			odd := []string{`["unknown"]`, `"x"`, `{}`, `{"jobsToStop":[1,null,"unknown"]}`, `<html>`}
			for _, answer := range odd {
				w.Script(apidouble.Stop, apidouble.Reply{Body: answer})
			}
			from := len(w.Calls(apidouble.Stop))
			w.StopJobs("B")
			eventually(t, func() bool { return exists(filepath.Join(g.dir, "B.cancelled")) }, "B goes on")
			eventually(t, func() bool { return len(w.Calls(apidouble.Stop)) > from+len(odd) }, "no more is asked")
			g.open("A")
			g.open("C")
			require.Equal(t, `"A"`, string(w.result(t, "A").Output))
			require.Equal(t, `"C"`, string(w.result(t, "C").Output))
			require.Empty(t, w.results("B"))
			require.NoFileExists(t, filepath.Join(g.dir, "A.cancelled"))
			requireCalm(t, w.Calls(apidouble.Stop)[from:])
			require.NotEmpty(t, w.warnings())
		})
	}
}

// requireCalm demands that calls which are answered at once are not made again and again.
func requireCalm(t *testing.T, calls []apidouble.Call) {
	t.Helper()
	const most = 2 // a second
	for i := most + 1; i < len(calls); i++ {
		require.GreaterOrEqual(t, calls[i].At.Sub(calls[i-most-1].At), 900*time.Millisecond)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// A plain function cannot be interrupted. When it goes on with a stopped job for too long, and nobody else needs its
// program, that is killed and started again.
func TestRunOfAHandlerThatDoesNotStop(t *testing.T) {
	t.Parallel()
	w := runThrough(t, doors["shim"], nil, "sync.py")
	started := filepath.Join(t.TempDir(), "started")
	w.Offer(fmt.Sprintf(`{"id":"j1","input":{"seconds":3600,"items":[],"started":%q}}`, started))
	// A job that is stopped before its function is called would never be in anybody's way.
	eventually(t, func() bool { return exists(started) }, "the job does not start")
	w.StopJobs("j1")
	w.awaitWord(t, "The program is killed")
	w.Offer(`{"id":"j2","input":{"items":["free"]}}`)
	require.JSONEq(t, `{"items":["free"]}`, string(w.result(t, "j2").Output))
	require.Empty(t, w.results("j1"))
}
