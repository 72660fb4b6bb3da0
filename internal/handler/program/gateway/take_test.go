package gateway

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol/server"
)

func TestTake(t *testing.T) {
	t.Run("waits for a job", func(t *testing.T) {
		within(t, func(r *rig) {
			go func() {
				time.Sleep(time.Second)
				go func() { _, _ = r.Handle(r.ctx, parsed("a"), &sink{}) }()
			}()
			r.take(sdkIdle, 1, "a")
			require.NoError(t, r.done("a"))
		})
	})
	t.Run("is held, and answered with nothing", func(t *testing.T) {
		within(t, func(r *rig) {
			begin := time.Now()
			r.take(sdkIdle, 1)
			require.Equal(t, r.opts.TakeHold, time.Since(begin))
		})
	})
	t.Run("in order, no more than asked for", func(t *testing.T) {
		within(t, func(r *rig) {
			for _, id := range []string{"a", "b", "c"} {
				r.handle(id)
			}
			r.take(sdkBusy, 2, "a", "b")
			r.take(sdkBusy, 2, "c")
		})
	})
	t.Run("gathers a batch", func(t *testing.T) {
		within(t, func(r *rig) {
			go func() {
				for _, id := range []string{"a", "b", "c"} {
					r.handle(id)
					time.Sleep(time.Millisecond)
				}
			}()
			r.take(sdkIdle, 3, "a", "b", "c")
		})
	})
	t.Run("released", func(t *testing.T) {
		within(t, func(r *rig) {
			begin := time.Now()
			time.AfterFunc(time.Second, r.Release)
			r.take(sdkIdle, 1)
			require.Equal(t, time.Second, time.Since(begin))
			r.handle("a")
			r.take(sdkIdle, 1)
			require.Equal(t, time.Second+releasedHold, time.Since(begin), "a program that goes on asking is slowed down")
		})
	})
	t.Run("broken off", func(t *testing.T) {
		within(t, func(r *rig) {
			ctx, cancel := r.as(sdkIdle)
			time.AfterFunc(time.Second, cancel)
			got, err := r.Take(ctx, "w", 1)
			require.NoError(t, err)
			require.Empty(t, got)
			r.handle("a")
			r.take(sdkIdle, 1, "a")
		})
	})
	t.Run("goes back to where it was", func(t *testing.T) {
		within(t, func(r *rig) {
			a, b := r.handle("a"), r.handle("b")
			r.take(sdkIdle, 1, "a")
			r.Untake("w", []json.RawMessage{raw("a"), raw("unknown"), json.RawMessage("no JSON")})
			require.ErrorContains(t, r.done("a"), "job not found", "nobody has it")
			r.take(sdkIdle, 2, "a", "b")
			require.NoError(t, r.done("a"))
			r.Untake("w", []json.RawMessage{raw("a")})
			require.NoError(t, r.done("b"))
			require.False(t, r.running(a))
			require.False(t, r.running(b))
		})
	})
	t.Run("the same id twice", func(t *testing.T) {
		within(t, func(r *rig) {
			r.handle("a")
			again := r.handle("a")
			require.False(t, r.running(again))
			require.ErrorContains(t, again.err, "already")
		})
	})
}

func TestLimit(t *testing.T) {
	within(t, func(r *rig) {
		require.Equal(t, 1, r.Limit(), "one job may always come")
		go func() { _, _ = r.Take(r.ctx, "w", 3) }()
		synctest.Wait()
		require.Equal(t, 3, r.Limit())
		a := r.handle("a")
		time.Sleep(gatherTime)
		synctest.Wait()
		require.Equal(t, 1, r.Limit(), "it has one and asks for none")
		go func() { _, _ = r.Take(r.ctx, "w", 2) }()
		synctest.Wait()
		require.Equal(t, 3, r.Limit())
		require.NoError(t, r.done("a"))
		require.False(t, r.running(a))
		require.Equal(t, 2, r.Limit())
		time.Sleep(r.opts.TakeHold)
		synctest.Wait()
		require.Equal(t, 1, r.Limit())
		require.Equal(t, 5, r.resized, "each change is told")
		go func() { _, _ = r.Take(r.ctx, "w", 1_000_000) }()
		synctest.Wait()
		require.Equal(t, maxLimit, r.Limit())
		r.Release()
		synctest.Wait()
	})
}

// The official SDK says with each call whether it works on anything.
func TestForgottenJobs(t *testing.T) {
	for _, tt := range []struct {
		name      string
		next      caller
		after     time.Duration
		beside    bool // another process asks as well
		forgotten bool
	}{
		{"by a new process", sdkIdle, beginTime, false, true},
		{"about to begin", sdkIdle, beginTime - 1, false, false},
		{"busy with it", sdkBusy, beginTime, false, false},
		{"somebody else's way of asking", other, beginTime, false, false},
		{"one of two processes", sdkIdle, beginTime, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, func(r *rig) {
				a := r.handle("a")
				r.take(sdkIdle, 1, "a")
				time.Sleep(tt.after)
				if tt.beside {
					ctx, cancel := r.as(sdkBusy)
					defer cancel()
					go func() { _, _ = r.Take(ctx, "w", 1) }()
					synctest.Wait()
				}
				r.take(tt.next, 1)
				require.Equal(t, !tt.forgotten, r.running(a))
				if tt.forgotten {
					require.ErrorIs(t, a.err, errForgotten)
					require.ErrorContains(t, r.done("a"), "job not found")
					return
				}
				require.NoError(t, r.Done(r.ctx, "w", "a", server.Done{}))
				require.False(t, r.running(a))
				require.NoError(t, a.err)
			})
		})
	}
}
