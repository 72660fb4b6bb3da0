package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"runpodctl-worker/internal/protocol"
)

// Progress implements Store.
func (m *Memory) Progress(_ context.Context, id, worker string, value json.RawMessage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.held(id, worker)
	if errors.Is(err, protocol.ErrJobSettled) && r.Policy.LateProgress && r.heldBy(worker) {
		m.reopen(r)
	} else if err != nil {
		return err
	}
	r.Output = value
	return nil
}

// AppendChunks implements Store.
func (m *Memory) AppendChunks(_ context.Context, id, worker string, chunks ...json.RawMessage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.held(id, worker)
	if err != nil {
		return err
	}
	r.chunks = append(r.chunks, chunks...)
	r.wake(false)
	return nil
}

// held is a job that a worker reports on while it runs. The report is also a sign of life.
func (m *Memory) held(id, worker string) (*record, error) {
	r, err := m.find(id)
	switch {
	case err != nil:
		return nil, err
	case r.Status.Terminal():
		return r, protocol.ErrJobSettled
	case r.Status != protocol.InProgress || !r.heldBy(worker):
		return nil, protocol.ErrNotHolder
	}
	r.renew(m.now())
	m.reschedule(r)
	return r, nil
}

// reopen undoes the end of a job, which is counted when it ends again.
func (m *Memory) reopen(r *record) {
	m.leave(r)
	switch r.Status {
	case protocol.Completed:
		m.completed--
	case protocol.Failed:
		m.failed--
	default: // counted nowhere
	}
	r.Status, r.Error, r.Ended = protocol.InProgress, "", time.Time{}
	m.running++
	m.busy[r.Worker]++
	r.renew(m.now())
	m.reschedule(r)
}

// DrainChunks implements Store.
func (m *Memory) DrainChunks(_ context.Context, id string) (Job, []json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(id)
	if err != nil {
		return Job{}, nil, err
	}
	chunks := r.chunks
	r.chunks = nil
	return r.Job, chunks, nil
}

// waiter is a Wait that waits.
type waiter struct {
	until Until
	ready chan struct{}
	job   Job // set when it ended, so that its waiter gets it even if the store has not kept it
}

// Wait implements Store.
func (m *Memory) Wait(ctx context.Context, id string, until Until, wait time.Duration) (Job, error) {
	m.mu.Lock()
	r, err := m.find(id)
	if err != nil {
		m.mu.Unlock()
		return Job{}, err
	}
	come := r.Status.Terminal() || until == EndedOrChunk && len(r.chunks) > 0
	if come || wait <= 0 || m.closed {
		defer m.mu.Unlock()
		return r.Job, nil
	}
	w := &waiter{until: until, ready: make(chan struct{})}
	r.waiters = append(r.waiters, w)
	m.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.forget(w)
	if w.job.Status.Terminal() {
		return w.job, nil
	}
	if r, err = m.find(id); err != nil {
		return Job{}, err
	}
	return r.Job, nil
}

// wake ends the waits for a chunk, and at the end of the job all of them.
func (r *record) wake(ended bool) {
	rest := r.waiters[:0]
	for _, w := range r.waiters {
		if ended || w.until == EndedOrChunk {
			if r.Status.Terminal() {
				w.job = r.Job
			}
			close(w.ready)
		} else {
			rest = append(rest, w)
		}
	}
	clear(r.waiters[len(rest):])
	r.waiters = rest
}

func (r *record) forget(w *waiter) {
	for i, other := range r.waiters {
		if other == w {
			r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
			return
		}
	}
}
