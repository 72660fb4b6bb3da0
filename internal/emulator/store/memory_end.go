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
	m.end(r, worker, end)
	return r.Job, nil
}

// end is the one place where a job becomes terminal. worker is who says so; empty for the platform.
func (m *Memory) end(r *record, worker string, e End) {
	m.leave(r)
	if isPlaceholder(r.Worker) && worker != "" {
		r.Worker = worker
	}
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
	m.keep(r)
}

// overhead is about what a record costs beside its data.
const overhead = 768

// keep lines a job up for its deletion, should the room run out before its retention is over. The newest
// is never deleted for want of room: somebody may be about to read it. One that is held is not in line.
func (m *Memory) keep(r *record) {
	if r.Held {
		return
	}
	r.size = int64(overhead + len(r.Payload) + len(r.Output) + len(r.Error))
	for _, chunk := range r.chunks {
		r.size += int64(len(chunk))
	}
	m.ended.pushBack(r)
	m.kept += r.size
	for m.RetainBytes > 0 && m.kept > m.RetainBytes && m.ended.first != r {
		m.remove(m.ended.first)
	}
}

// Release implements Store.
func (m *Memory) Release(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(id)
	if err != nil {
		return err
	}
	r.Held = false
	if r.Status.Terminal() && r.in == nil {
		m.keep(r)
	}
	return nil
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
	m.leave(r)
	r.Job = Job{
		ID: r.ID, Payload: r.Payload, Policy: r.Policy, Webhook: r.Webhook, Held: r.Held,
		Status: protocol.InQueue, Created: r.Created,
	}
	r.dies, r.chunks = m.now().Add(r.Policy.TTL), nil
	m.queue.pushBack(r)
	m.reschedule(r)
	queued := r.Job
	m.dispatch()
	return queued, nil
}
