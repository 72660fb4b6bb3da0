package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment is a lookup in what a hosted worker finds, with some of it replaced.
func environment(change map[string]string) func(string) string {
	const base = "https://platform.invalid/v2/ep"
	env := map[string]string{
		"RUNPOD_WEBHOOK_GET_JOB":     base + "/job-take/$ID?gpu=L4",
		"RUNPOD_WEBHOOK_POST_OUTPUT": base + "/job-done/$RUNPOD_POD_ID/$ID?gpu=L4",
		"RUNPOD_WEBHOOK_POST_STREAM": base + "/job-stream/$RUNPOD_POD_ID/$ID?gpu=L4",
		"RUNPOD_WEBHOOK_PING":        base + "/ping/$RUNPOD_POD_ID?gpu=L4",
	}
	return func(name string) string {
		if value, ok := change[name]; ok {
			return value
		}
		return env[name]
	}
}

// rig is a gateway without its port: the calls are made as package server makes them. It lives in a synctest bubble.
type rig struct {
	*Gateway
	t       *testing.T
	ctx     context.Context
	resized int

	told   sync.Mutex
	faults []error
}

// faulted is why the program would have been ended.
func (r *rig) faulted() []error {
	synctest.Wait()
	r.told.Lock()
	defer r.told.Unlock()
	return r.faults
}

// within runs a test against a gateway whose program has just asked for its first job.
func within(t *testing.T, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, ctx: t.Context()}
		r.Gateway = New(Options{
			Lookup: environment(nil), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
			Resized: func() { r.resized++ }, Fault: func(err error) {
				r.told.Lock()
				defer r.told.Unlock()
				r.faults = append(r.faults, err)
			},
		})
		r.Serve()
		defer r.endJobs()
		defer r.Release()
		test(r)
	})
}

var (
	sdkIdle = caller{official: true, idle: true}
	sdkBusy = caller{official: true}
	other   = caller{idle: true}
)

// as is a call's context, by who makes it, and what breaks the call off.
func (r *rig) as(c caller) (context.Context, context.CancelFunc) {
	return context.WithCancel(context.WithValue(r.ctx, callerKey{}, c))
}

// job is a job in Handle.
type handled struct {
	sink   *sink
	cancel context.CancelCauseFunc
	over   chan struct{}
	out    protocol.Outcome
	err    error
}

func (r *rig) handle(id string) *handled {
	ctx, cancel := context.WithCancelCause(r.ctx)
	h := &handled{sink: &sink{}, cancel: cancel, over: make(chan struct{})}
	r.t.Cleanup(func() { cancel(nil) })
	job := protocol.Job{ID: id, Raw: raw(id)}
	go func() {
		defer close(h.over)
		h.out, h.err = r.Handle(ctx, job, h.sink)
	}()
	synctest.Wait()
	return h
}

func raw(id string) json.RawMessage { return json.RawMessage(`{"id":"` + id + `", "input":{}}`) }

func (r *rig) running(h *handled) bool {
	synctest.Wait()
	select {
	case <-h.over:
		return false
	default:
		return true
	}
}

// take takes up to n jobs, which must be these.
func (r *rig) take(c caller, n int, want ...string) {
	r.t.Helper()
	ctx, cancel := r.as(c)
	defer cancel()
	got, err := r.Take(ctx, "w", n)
	require.NoError(r.t, err)
	var objects []json.RawMessage
	for _, id := range want {
		objects = append(objects, raw(id))
	}
	require.Equal(r.t, objects, got)
}

func (r *rig) done(id string) error {
	return r.Done(r.ctx, "w", id, server.Done{Output: json.RawMessage(`"` + id + `"`)})
}

// sink keeps what a job reports.
type sink struct {
	mu               sync.Mutex
	chunks, progress []string
	full             bool // no item is taken
}

var errFull = errors.New("no room")

func (s *sink) Chunk(item json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full {
		return errFull
	}
	s.chunks = append(s.chunks, string(item))
	return nil
}

func (s *sink) Progress(value json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress = append(s.progress, string(value))
}
