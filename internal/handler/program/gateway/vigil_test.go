package gateway

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A process that dies breaks off the call by which it waits for stops.
func TestTakerDies(t *testing.T) {
	for _, tt := range []struct {
		name  string
		taker caller
		calls bool // somebody calls in time
		gone  bool
	}{
		{"the official SDK", sdkBusy, false, true},
		{"it calls again", sdkBusy, true, false},
		{"another client, which may have limits of its own", other, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, func(r *rig) {
				a := r.handle("a")
				r.take(tt.taker, 1, "a")
				ctx, cancel := r.as(tt.taker)
				over := make(chan struct{})
				go func() { defer close(over); _, _ = r.Stops(ctx, "w") }()
				time.Sleep(time.Second)
				cancel()
				<-over
				time.Sleep(goneTime - time.Millisecond)
				require.True(t, r.running(a))
				if tt.calls {
					r.stopped()
				}
				time.Sleep(10 * time.Millisecond)
				require.Equal(t, !tt.gone, r.running(a))
				if tt.gone {
					require.ErrorIs(t, a.err, errGone)
				}
				require.Empty(t, r.faulted())
			})
		})
	}
}

// A program that neither works nor asks for work is of no use.
func TestSilence(t *testing.T) {
	t.Run("after a job", func(t *testing.T) {
		within(t, func(r *rig) {
			r.handle("a")
			r.take(other, 1, "a")
			time.Sleep(24 * time.Hour)
			require.Empty(t, r.faulted(), "it works")
			require.NoError(t, r.done("a"))
			time.Sleep(minSilence - time.Second)
			require.Empty(t, r.faulted())
			time.Sleep(2 * time.Second)
			require.Equal(t, []error{ErrSilent}, r.faulted())
		})
	})
	t.Run("it waits for work", func(t *testing.T) {
		within(t, func(r *rig) {
			for begin := time.Now(); time.Since(begin) < 2*minSilence; {
				r.take(other, 1)
				time.Sleep(time.Minute)
			}
			require.Empty(t, r.faulted())
		})
	})
	t.Run("as long as its load, twice", func(t *testing.T) {
		within(t, func(r *rig) {
			r.opened = time.Now().Add(-time.Hour)
			r.Serve()
			time.Sleep(2*time.Hour - time.Second)
			require.Empty(t, r.faulted())
			time.Sleep(2 * time.Second)
			require.Equal(t, []error{ErrSilent}, r.faulted())
		})
	})
}

// A program that was frozen together with the worker has not been silent.
func TestVigilInAFrozenContainer(t *testing.T) {
	s := open(t, nil)
	ended := make(chan error, 1)
	const patience = 3 * time.Second
	s.mu.Lock()
	s.opts.Fault = func(err error) { ended <- err }
	s.vigil.patience = patience
	s.watch()
	s.mu.Unlock()
	require.NoError(t, exec.Command("sh", "-c", "kill -STOP $PPID; sleep 4; kill -CONT $PPID").Run())
	select {
	case err := <-ended:
		require.Fail(t, "it is given up", "%v", err)
	case <-time.After(patience / 3):
	}
	require.ErrorIs(t, <-ended, ErrSilent)
}
