package gateway

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errStopped = errors.New("the platform stops it")

// stopped asks which jobs to stop.
func (r *rig) stopped(want ...string) {
	r.t.Helper()
	ids, err := r.Stops(r.ctx, "w")
	require.NoError(r.t, err)
	slices.Sort(ids)
	require.Equal(r.t, want, ids)
}

func TestStops(t *testing.T) {
	t.Run("before it is taken", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			a.cancel(errStopped)
			require.False(t, r.running(a))
			require.ErrorIs(t, a.err, errStopped)
			r.take(sdkIdle, 1)
			r.stopped()
		})
	})
	t.Run("is over when the program asks again", func(t *testing.T) {
		within(t, func(r *rig) {
			a, b := r.handle("a"), r.handle("b")
			r.take(sdkIdle, 2, "a", "b")
			a.cancel(errStopped)
			require.True(t, r.running(a))
			r.stopped("a")
			require.True(t, r.running(a), "it may clean up")
			r.stopped()
			require.False(t, r.running(a))
			require.ErrorIs(t, a.err, errStopped)
			require.True(t, r.running(b))
		})
	})
	t.Run("finished all the same", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			r.take(sdkIdle, 1, "a")
			a.cancel(errStopped)
			synctest.Wait()
			require.NoError(t, r.done("a"))
			require.False(t, r.running(a))
			require.NoError(t, a.err)
			require.Equal(t, `"a"`, string(a.out.Output))
			r.stopped()
		})
	})
	t.Run("told to all who wait", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			r.take(sdkIdle, 1, "a")
			told := make(chan []string, 2)
			for range 2 {
				go func() {
					ids, _ := r.Stops(r.ctx, "w")
					told <- ids
				}()
			}
			synctest.Wait()
			a.cancel(errStopped)
			require.Equal(t, []string{"a"}, <-told)
			require.Equal(t, []string{"a"}, <-told)
		})
	})
	t.Run("told again when the call was broken off", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			r.take(sdkIdle, 1, "a")
			ctx, cancel := r.as(sdkBusy)
			told := make(chan []string)
			go func() {
				ids, _ := r.Stops(ctx, "w")
				told <- ids
			}()
			synctest.Wait()
			cancel()
			a.cancel(errStopped)
			require.Empty(t, <-told)
			require.True(t, r.running(a))
			r.stopped("a")
		})
	})
	t.Run("nothing to stop", func(t *testing.T) {
		within(t, func(r *rig) {
			begin := time.Now()
			r.stopped()
			require.Equal(t, r.opts.StopHold, time.Since(begin))
		})
	})
	t.Run("released", func(t *testing.T) {
		within(t, func(r *rig) {
			time.AfterFunc(time.Second, r.Release)
			begin := time.Now()
			r.stopped()
			require.Equal(t, time.Second, time.Since(begin))
		})
	})
	t.Run("a stopped job that did not arrive", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			r.take(sdkIdle, 1, "a")
			a.cancel(errStopped)
			synctest.Wait()
			r.Untake("w", []json.RawMessage{raw("a")})
			require.False(t, r.running(a))
			require.ErrorIs(t, a.err, errStopped)
		})
	})
}
