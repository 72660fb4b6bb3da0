package test

import (
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

const emptyJob = `{"id":"j1","input":{"items":[]}}`

// accepted waits until a job-done is answered 200 by a double that refuses the first n, and returns the
// times of all posts.
func accepted(t *testing.T, w *worker, refused int) []time.Time {
	t.Helper()
	eventually(t, func() bool { return len(w.results("j1")) > refused }, "not tried again after %d refusals", refused)
	w.Offer(`{"id":"j2","input":{"items":[]}}`) // its result shows that the first is settled
	eventually(t, func() bool { return len(w.results("j2")) > 0 }, "no next job")
	posts := w.results("j1")
	require.Len(t, posts, refused+1, "delivered once")
	times := make([]time.Time, 0, len(posts))
	for _, post := range posts {
		times = append(times, post.At)
	}
	return times
}

// RD-02 a: an overloaded platform gets the result in the end, asked less and less often.
func TestRD02ServerErrors(t *testing.T) {
	t.Parallel()
	const refused = 4
	d := apidouble.New(t)
	for range refused {
		d.Script(apidouble.Done, apidouble.Reply{Status: http.StatusServiceUnavailable})
	}
	d.Offer(emptyJob)
	times := accepted(t, runWorker(t, d, "sync.py", nil), refused)
	// Jitter may turn two neighbours round, never the first half and the second.
	require.Greater(t, times[4].Sub(times[2]), times[2].Sub(times[0]))
}

// RD-02 b: a broken connection is no answer.
func TestRD02Resets(t *testing.T) {
	t.Parallel()
	const refused = 3
	d := apidouble.New(t)
	for range refused {
		d.Script(apidouble.Done, apidouble.Reply{Drop: true})
	}
	d.Offer(emptyJob)
	accepted(t, runWorker(t, d, "sync.py", nil), refused)
}

// RD-02 c: a refusal that will not change is not asked for again and again.
func TestRD02Refusals(t *testing.T) {
	t.Parallel()
	for _, code := range []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge,
	} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			d := apidouble.New(t)
			d.On(apidouble.Done, func(call apidouble.Call) *apidouble.Reply {
				if call.Job != "j1" {
					return nil
				}
				return &apidouble.Reply{Status: code}
			})
			d.Offer(emptyJob, `{"id":"j2","input":{"items":[]}}`)
			w := runWorker(t, d, "sync.py", nil)
			eventually(t, func() bool { return len(w.results("j2")) > 0 }, "no next job")
			time.Sleep(2 * time.Second)
			require.LessOrEqual(t, len(w.results("j1")), 5)
			require.True(t, w.alive())
		})
	}
}

// RD-02 d: a platform that says when to come back is taken at its word.
func TestRD02RetryAfter(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	d.Script(apidouble.Done, apidouble.Reply{
		Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "3"},
	})
	d.Offer(emptyJob)
	times := accepted(t, runWorker(t, d, "sync.py", nil), 1)
	require.GreaterOrEqual(t, times[1].Sub(times[0]), 3*time.Second)
}

// A log collector that goes away takes no job along.
func TestRunWithNobodyReadingItsOutput(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	args := []string{binary(t), "run", "--python", python(t), "--handler", handler(t, "loud.py")}
	p := start(t, command{args: args, env: environment(d, "w1"), dir: t.TempDir(), deaf: true})
	for _, id := range []string{"j1", "j2"} {
		d.Offer(`{"id":"` + id + `","input":{}}`)
		eventually(t, func() bool { return len(d.Posts(apidouble.Done, id)) > 0 || !p.alive() }, "no result of %s", id)
		require.Len(t, d.Posts(apidouble.Done, id), 1)
	}
	p.signal(t, syscall.SIGTERM)
	require.Zero(t, p.wait(t))
}
