package volume

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// VC-06: what hangs is left behind, and changes nothing when it comes back.
func TestGuard(t *testing.T) {
	failed := errors.New("failed")
	tests := []struct {
		name string
		work func(ctx context.Context, p *pulse, hang <-chan struct{}) error
		stop time.Duration // when the caller gives up
		want error
		took time.Duration
	}{
		{"done at once", func(context.Context, *pulse, <-chan struct{}) error { return nil }, 0, nil, 0},
		{"fails", func(context.Context, *pulse, <-chan struct{}) error { return failed }, 0, failed, 0},
		{"hangs", func(_ context.Context, _ *pulse, hang <-chan struct{}) error { <-hang; return nil }, 0, ErrStalled, stallLimit},
		{"slow, but gets on", func(_ context.Context, p *pulse, _ <-chan struct{}) error {
			for range 10 {
				time.Sleep(stallLimit - time.Second)
				p.beat()
			}
			return nil
		}, 0, nil, 10 * (stallLimit - time.Second)},
		{"gets on, then hangs", func(_ context.Context, p *pulse, hang <-chan struct{}) error {
			time.Sleep(stallLimit - time.Second)
			p.moved(1)
			<-hang
			return nil
		}, 0, ErrStalled, 2*stallLimit - time.Second},
		{"stops when it is told", func(ctx context.Context, _ *pulse, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() }, time.Second, context.Canceled, time.Second},
		{"does not stop", func(_ context.Context, _ *pulse, hang <-chan struct{}) error { <-hang; return nil }, time.Second, context.Canceled, time.Second + cancelGrace},
		{"beats, but does not stop", func(_ context.Context, p *pulse, hang <-chan struct{}) error {
			for {
				select {
				case <-hang:
					return nil
				case <-time.After(time.Second):
					p.beat()
				}
			}
		}, time.Second, context.Canceled, time.Second + cancelGrace},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, err := New(Options{Volume: "/volume", Namespace: "n"})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, cancel)
				}
				hang := make(chan struct{})
				var told atomic.Bool // that nothing is to be changed any more
				began := time.Now()
				_, err = guard(ctx, c, func(ctx context.Context, p *pulse) (struct{}, error) {
					err := tt.work(ctx, p, hang)
					told.Store(ctx.Err() != nil)
					return struct{}{}, err
				})
				require.ErrorIs(t, err, tt.want)
				require.InDelta(t, tt.took.Seconds(), time.Since(began).Seconds(), 2*progressEvery.Seconds())
				close(hang)
				synctest.Wait()
				require.Equal(t, errors.Is(tt.want, ErrStalled) || tt.stop > 0, told.Load())
			})
		})
	}
}

func TestProgress(t *testing.T) {
	r := newRig(t)
	r.write("a", "a")
	r.write("b", large("b"))
	want := Progress{Files: 2, FilesTotal: 2, Bytes: int64(1 + len(large("b"))), BytesTotal: int64(1 + len(large("b")))}
	for _, phase := range []string{"sync", "hydrate", "verify"} {
		var last Progress
		c := r.cache(func(o *Options) { o.Progress = func(p Progress) { last = p } })
		var err error
		switch phase {
		case "sync":
			_, err = c.Sync(t.Context())
			r.fresh()
		case "hydrate":
			_, err = c.Hydrate(t.Context())
		case "verify":
			_, err = c.Verify(t.Context(), false)
		}
		require.NoError(t, err)
		want.Phase = phase
		require.Equal(t, want, last)
	}
}
