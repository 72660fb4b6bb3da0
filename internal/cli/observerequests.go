package cli

import (
	"context"
	"slices"
	"sync"
	"time"

	"runpodctl-worker/internal/metrics"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker"
)

// requests is a handler whose jobs come by requests, not from a queue, while somebody looks.
type requests struct {
	worker.Handler
	metrics *metrics.Metrics
	fetch   context.Context // takes no more jobs after its end

	mu    sync.Mutex
	ready bool
	held  []*metrics.Job // the oldest first
}

// requests has the state be that of a handler.
func (o *observed) requests(fetch context.Context, h worker.Handler) worker.Handler {
	if o == nil {
		return h
	}
	r := &requests{Handler: h, metrics: o.metrics, fetch: fetch}
	o.show(r.state)
	return r
}

func (r *requests) Start(ctx context.Context) (protocol.Ready, error) {
	ready, err := r.Handler.Start(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = err == nil
	return ready, err
}

func (r *requests) Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	began := time.Now()
	held := &metrics.Job{ID: job.ID, State: string(worker.Running), Taken: began}
	r.mu.Lock()
	r.held = append(r.held, held)
	r.mu.Unlock()
	r.metrics.Received()
	r.metrics.Started()
	outcome, err := r.Handler.Handle(ctx, job, sink)
	r.metrics.Returned(time.Since(began))
	end := worker.Completed
	if err != nil || outcome.Error != "" {
		end = worker.Failed
	}
	r.metrics.Ended(string(end), 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = slices.DeleteFunc(r.held, func(j *metrics.Job) bool { return j == held })
	return outcome, err
}

// Resized is that of the handler; the limit of another never changes by itself.
func (r *requests) Resized() <-chan struct{} {
	if h, ok := r.Handler.(worker.Resizer); ok {
		return h.Resized()
	}
	return nil
}

func (r *requests) state() metrics.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := metrics.State{Phase: string(worker.Loading)}
	switch {
	case ended(r.fetch):
		state.Phase = string(worker.Draining)
	case r.ready:
		state.Phase = string(worker.Ready)
		state.Slots = r.Limit()
	}
	for _, job := range r.held {
		state.Jobs = append(state.Jobs, *job)
	}
	return state
}
