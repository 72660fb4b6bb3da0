package store

import (
	"context"

	"runpodctl-worker/internal/protocol"
)

// Finish implements Store.
func (m *Memory) Finish(_ context.Context, id, worker string, end End) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(id)
	switch {
	case err != nil:
		return Job{}, err
	case r.Status.Terminal():
		return r.Job, protocol.ErrJobSettled
	case worker != "" && !r.heldBy(worker):
		return r.Job, protocol.ErrNotHolder
	}
	m.end(r, end)
	if isPlaceholder(r.Worker) && worker != "" {
		r.Worker = worker
	}
	return r.Job, nil
}

// end is the one place where a job becomes terminal.
func (m *Memory) end(r *record, e End) {
	m.leave(r)
	r.Status, r.Output, r.Error, r.Ended = e.Status, e.Output, e.Error, m.now()
	switch e.Status {
	case protocol.Completed:
		m.completed++
	case protocol.Failed:
		m.failed++
	default: // counted nowhere
	}
	m.reschedule(r)
	r.wake(true)
}

// Requeue implements Store.
func (m *Memory) Requeue(_ context.Context, id string) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(id)
	if err != nil {
		return Job{}, err
	}
	if r.Status != protocol.Failed && r.Status != protocol.TimedOut {
		return r.Job, ErrNotFailed
	}
	r.Job = Job{ID: r.ID, Payload: r.Payload, Policy: r.Policy, Status: protocol.InQueue, Created: r.Created}
	r.chunks = nil
	m.queue.pushBack(r)
	m.reschedule(r)
	queued := r.Job
	m.dispatch()
	return queued, nil
}
