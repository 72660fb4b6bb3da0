package ready_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/ready"
)

// script is a probe whose answer is set, or which does not answer.
type script struct {
	name string
	mu   sync.Mutex
	err  error
	hang bool
	asks int
}

func (s *script) String() string { return s.name }

func (s *script) Check(ctx context.Context) error {
	s.mu.Lock()
	err, hang := s.err, s.hang
	s.asks++
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *script) set(err error, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hang = err, hang
}

func (s *script) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks
}

var errRefused = errors.New("connection refused")

func newGate(probes ...ready.Probe) (*ready.Gate, *bytes.Buffer) {
	var log bytes.Buffer // read when all is quiet
	return ready.NewGate(slog.New(slog.NewTextHandler(&log, nil)), probes...), &log
}

func TestAwait(t *testing.T) {
	t.Run("until all hold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := &script{name: "a", err: errRefused}, &script{name: "b", err: errRefused}
			gate, log := newGate(a, b)
			done := make(chan error)
			go func() { done <- gate.Await(t.Context()) }()
			time.Sleep(20 * time.Second)
			a.set(nil, false)
			time.Sleep(12 * time.Second)
			b.set(nil, false)
			require.NoError(t, <-done)
			require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line after 30 s: a holds by then")
			require.Regexp(t, `msg="Waiting for readiness." since=3[01]s probe=b error="connection refused"`, log.String())
			require.Less(t, a.asked(), 50)
		})
	})
	t.Run("one that is ready at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			gate, _ := newGate(&script{})
			require.NoError(t, gate.Await(t.Context()))
			require.Equal(t, began, time.Now())
		})
	})
	for name, tt := range map[string]struct {
		probe *script
		want  string
	}{
		"too late":    {&script{name: "p", err: errRefused}, "time is up; what it serves is not ready: p: connection refused"},
		"no answer":   {&script{name: "p", hang: true}, "time is up; what it serves is not ready: p: no answer within 5s"},
		"out of hand": {&script{name: "p", hang: true}, "time is up; what it serves is not ready: it did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := time.Minute
				if name == "out of hand" {
					limit = time.Second
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("time is up"))
				defer cancel()
				gate, _ := newGate(tt.probe)
				err := gate.Await(ctx)
				require.EqualError(t, err, tt.want)
				require.ErrorIs(t, err, context.Cause(ctx))
			})
		})
	}
}

func TestWatch(t *testing.T) {
	type step struct {
		err  error
		hang bool
		busy bool
		lost bool
	}
	for _, tt := range []struct {
		name  string
		steps []step // one for each time that it looks
	}{
		{"three in a row", []step{{}, {err: errRefused}, {err: errRefused}, {err: errRefused, lost: true}}},
		{"a hiccup", []step{{err: errRefused}, {err: errRefused}, {}, {err: errRefused}, {err: errRefused}, {}}},
		{"slow and idle", []step{{hang: true}, {hang: true}, {hang: true, lost: true}}},
		{"slow and busy", []step{{hang: true, busy: true}, {hang: true, busy: true}, {hang: true, busy: true}, {hang: true, busy: true}}},
		{"gone and busy", []step{{err: errRefused, busy: true}, {err: errRefused, busy: true}, {err: errRefused, busy: true, lost: true}}},
		{"busy in between", []step{{err: errRefused}, {hang: true, busy: true}, {err: errRefused}, {err: errRefused, lost: true}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				probe := &script{name: "p"}
				gate, _ := newGate(&script{name: "good"}, probe)
				ctx, cancel := context.WithCancel(t.Context())
				var busy atomic.Bool
				done := make(chan error, 1)
				go func() { done <- gate.Watch(ctx, busy.Load) }()
				time.Sleep(6 * time.Second) // it looks every ten seconds, and knows after five more
				for i, s := range tt.steps {
					busy.Store(s.busy)
					probe.set(s.err, s.hang)
					time.Sleep(10 * time.Second)
					require.Equal(t, i+1, probe.asked())
					require.Equal(t, s.lost, len(done) == 1, "look %d", i+1)
				}
				if tt.steps[len(tt.steps)-1].lost {
					err := <-done
					lost, ok := errors.AsType[*ready.LostError](err)
					require.True(t, ok)
					require.Equal(t, "p", lost.Probe)
					require.ErrorContains(t, err, "readiness lost: p: ")
					cancel()
					return
				}
				cancel()
				require.NoError(t, <-done)
			})
		})
	}
}

// broken is a probe with a mistake in it.
type broken struct{}

func (broken) String() string { return "broken" }

func (broken) Check(context.Context) error { panic("out of order") }

// A mistake in a probe is its answer: it does not end the worker.
func TestGate_AProbeThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := ready.NewGate(slog.New(slog.DiscardHandler), &script{name: "well"}, broken{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, gate.Await(ctx), "broken: a mistake in this program: out of order, at ")
		require.ErrorContains(t, gate.Watch(t.Context(), func() bool { return true }), "readiness lost: broken: a mistake")
	})
}
