package test

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/test/double"
)

const emptyJob = `{"id":"j1","input":{"items":[]}}`

// accepted waits until a job-done is answered 200 by a double that refuses the first n, and returns the
// times of all posts.
func accepted(t *testing.T, w *worker, refused int) []time.Time {
	t.Helper()
	eventually(t, func() bool { return len(w.Results("j1")) > refused }, "not tried again after %d refusals", refused)
	w.Push(`{"id":"j2","input":{"items":[]}}`) // its result shows that the first is settled
	eventually(t, func() bool { return len(w.Results("j2")) > 0 }, "no next job")
	posts := w.Results("j1")
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
	const refused = 5
	d := platform(t)
	d.On(double.Done, double.Refuse(refused, http.StatusServiceUnavailable, nil))
	d.Push(emptyJob)
	times := accepted(t, runWorker(t, d, "sync.py", nil), refused)
	// Jitter may turn two neighbours round, never the first half and the second.
	require.Greater(t, times[5].Sub(times[3]), times[2].Sub(times[0]))
}

// RD-02 b: a broken connection is no answer.
func TestRD02Resets(t *testing.T) {
	t.Parallel()
	const refused = 3
	d := platform(t)
	var calls atomic.Int32
	d.On(double.Done, func(w http.ResponseWriter, call double.Call) bool {
		return calls.Add(1) <= refused && double.Reset(w, call)
	})
	d.Push(emptyJob)
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
			d := platform(t)
			d.On(double.Done, func(w http.ResponseWriter, call double.Call) bool {
				if call.Job == "j1" {
					w.WriteHeader(code)
				}
				return call.Job == "j1"
			})
			d.Push(emptyJob, `{"id":"j2","input":{"items":[]}}`)
			w := runWorker(t, d, "sync.py", nil)
			eventually(t, func() bool { return len(w.Results("j2")) > 0 }, "no next job")
			time.Sleep(2 * time.Second)
			require.LessOrEqual(t, len(w.Results("j1")), 5)
			require.True(t, w.alive())
		})
	}
}

// RD-02 d: a platform that says when to come back is taken at its word.
func TestRD02RetryAfter(t *testing.T) {
	t.Parallel()
	d := platform(t)
	d.On(double.Done, double.Refuse(1, http.StatusTooManyRequests, http.Header{"Retry-After": {"3"}}))
	d.Push(emptyJob)
	times := accepted(t, runWorker(t, d, "sync.py", nil), 1)
	require.GreaterOrEqual(t, times[1].Sub(times[0]), 3*time.Second)
}
