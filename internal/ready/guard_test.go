package ready_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/ready"
	"runpodctl-worker/internal/worker"
)

// What a worker looks for in a handler is there behind a gate too.
var (
	_ worker.Handler = (*ready.Guarded)(nil)
	_ worker.Scaler  = (*ready.Guarded)(nil)
	_ worker.Resizer = (*ready.Guarded)(nil)
	_ ready.Handler  = (*program.Program)(nil)
)

var errCrashed = errors.New("the program ended (exit code 3)")

// fake is a handler whose jobs last until its program ends.
type fake struct {
	startErr error

	mu      sync.Mutex
	err     error
	once    sync.Once
	exited  chan struct{}
	stopped bool
}

func newFake() *fake { return &fake{exited: make(chan struct{})} }

func (f *fake) Start(context.Context) (protocol.Ready, error) {
	return protocol.Ready{Name: "fake"}, f.startErr
}

func (f *fake) Handle(ctx context.Context, job protocol.Job, _ protocol.Sink) (protocol.Outcome, error) {
	if job.ID == "quick" {
		return protocol.Outcome{Output: []byte("1")}, nil
	}
	select {
	case <-f.exited:
		return protocol.Outcome{}, f.Err()
	case <-ctx.Done():
		return protocol.Outcome{}, context.Cause(ctx)
	}
}

func (*fake) Limit() int                { return 7 }
func (f *fake) Exited() <-chan struct{} { return f.exited }

func (f *fake) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fake) crash(err error) {
	f.once.Do(func() {
		f.mu.Lock()
		f.err = err
		f.mu.Unlock()
		close(f.exited)
	})
}

func (f *fake) Stop(ctx context.Context) error {
	select {
	case <-time.After(time.Second): // it takes its time
	case <-ctx.Done():
	}
	f.crash(errors.New("the program ended (killed by SIGTERM)"))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	return nil
}

// able is a handler that can do all that a handler can.
type able struct{ *fake }

func (able) Concurrency(_ context.Context, current int) (int, error) { return current + 1, nil }
func (able) Check(_ context.Context, index int) error                { return fmt.Errorf("check %d", index) }
func (able) Resized() <-chan struct{}                                { return make(chan struct{}) }

func over(g *ready.Guarded) bool {
	select {
	case <-g.Exited():
		return true
	default:
		return false
	}
}

func guarded(f *fake, probes ...ready.Probe) *ready.Guarded {
	gate, _ := newGate(probes...)
	return ready.Guard(f, gate)
}

func TestGuard_StartWaits(t *testing.T) {
	t.Run("until it is ready", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			probe, began := &script{name: "p", err: errRefused}, time.Now()
			time.AfterFunc(time.Minute, func() { probe.set(nil, false) })
			g := guarded(newFake(), probe)
			r, err := g.Start(t.Context())
			require.NoError(t, err)
			require.Equal(t, "fake", r.Name)
			require.GreaterOrEqual(t, time.Since(began), time.Minute)
			require.False(t, over(g))
			require.NoError(t, g.Stop(t.Context()))
			require.False(t, over(g), "it did not end by itself")
		})
	})
	t.Run("not for a program that has ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			time.AfterFunc(time.Minute, func() { f.crash(errCrashed) })
			g := guarded(f, &script{name: "p", err: errRefused})
			_, err := g.Start(t.Context())
			require.ErrorIs(t, err, errCrashed)
			require.NoError(t, g.Stop(t.Context()))
		})
	})
	t.Run("not where it does not start", func(t *testing.T) {
		f, probe := newFake(), &script{}
		f.startErr = errCrashed
		g := guarded(f, probe)
		_, err := g.Start(t.Context())
		require.ErrorIs(t, err, errCrashed)
		require.Zero(t, probe.asked())
		require.NoError(t, g.Stop(t.Context()))
	})
}

func TestGuard_Lost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, probe := newFake(), &script{name: "p"}
		g := guarded(f, probe)
		_, err := g.Start(t.Context())
		require.NoError(t, err)
		jobs, known := make(chan error, 1), make(chan bool, 1)
		go func() {
			_, err := g.Handle(t.Context(), protocol.Job{ID: "long"}, nil)
			known <- over(g)
			jobs <- err
		}()
		probe.set(nil, true)
		time.Sleep(5*time.Minute + 6*time.Second)
		require.False(t, over(g), "a job keeps it busy")
		probe.set(errRefused, false)
		<-g.Exited()
		require.NoError(t, f.Err(), "the program does not know yet")
		lost, ok := errors.AsType[*ready.LostError](g.Err())
		require.True(t, ok)
		require.Equal(t, "readiness lost: p: connection refused", lost.Error())
		require.True(t, <-known, "the end is known before the job is back")
		err = <-jobs
		require.ErrorIs(t, err, lost)
		require.ErrorContains(t, err, "killed by SIGTERM")
		require.True(t, f.stopped)
		require.NoError(t, g.Stop(t.Context()))
	})
}

func TestGuard_StopHurries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe := &script{name: "p"}
		g := guarded(newFake(), probe)
		_, err := g.Start(t.Context())
		require.NoError(t, err)
		probe.set(errRefused, false)
		<-g.Exited() // and now the program has its time to stop
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, g.Stop(ctx))
		require.Equal(t, began, time.Now())
	})
}

func TestGuard_Crash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		g := guarded(f, &script{})
		_, err := g.Start(t.Context())
		require.NoError(t, err)
		require.NoError(t, g.Err())
		out, err := g.Handle(t.Context(), protocol.Job{ID: "quick"}, nil)
		require.NoError(t, err)
		require.Equal(t, "1", string(out.Output))
		f.crash(errCrashed)
		_, err = g.Handle(t.Context(), protocol.Job{ID: "long"}, nil)
		require.Equal(t, errCrashed, err)
		require.True(t, over(g))
		require.Equal(t, errCrashed, g.Err())
		require.NoError(t, g.Stop(t.Context()))
	})
}

func TestGuard_PassesOn(t *testing.T) {
	gate, _ := newGate()
	t.Run("what the handler can do", func(t *testing.T) {
		g := ready.Guard(able{newFake()}, gate)
		n, err := g.Concurrency(t.Context(), 4)
		require.NoError(t, err)
		require.Equal(t, 5, n)
		require.EqualError(t, g.Check(t.Context(), 2), "check 2")
		require.NotNil(t, g.Resized())
		require.Equal(t, 7, g.Limit())
	})
	t.Run("and nothing else", func(t *testing.T) {
		g := ready.Guard(newFake(), gate)
		_, err := g.Concurrency(t.Context(), 4)
		require.Error(t, err)
		require.Error(t, g.Check(t.Context(), 0))
		require.Nil(t, g.Resized())
	})
}
