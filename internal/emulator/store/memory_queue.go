package store

import (
	"context"
	"strings"
	"time"

	"runpodctl-worker/internal/protocol"
)

// taker is a Take that waits. Jobs are handed to it directly, so that a new job wakes one worker.
type taker struct {
	Take
	jobs chan []Job // holds one answer, so that handing over never blocks
}

// Take implements Store.
func (m *Memory) Take(ctx context.Context, t Take) ([]Job, error) {
	m.mu.Lock()
	if ctx.Err() != nil {
		m.mu.Unlock()
		return nil, nil
	}
	jobs := m.takeNow(t)
	if len(jobs) > 0 || t.Wait <= 0 || m.closed {
		m.mu.Unlock()
		return jobs, nil
	}
	w := &taker{Take: t, jobs: make(chan []Job, 1)}
	place := m.takers.PushBack(w)
	m.mu.Unlock()

	timer := time.NewTimer(t.Wait)
	defer timer.Stop()
	select {
	case jobs = <-w.jobs:
		return jobs, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.takers.Remove(place)
	select {
	case jobs = <-w.jobs: // handed over at the last moment
	default:
	}
	return jobs, nil
}

// takeNow starts up to t.Max waiting jobs.
func (m *Memory) takeNow(t Take) []Job {
	var jobs []Job
	now := m.now()
	for len(jobs) < t.Max {
		first := m.queue.Front()
		if first == nil {
			break
		}
		r := first.Value.(*record)
		if r.expired(now) {
			m.remove(r)
			continue
		}
		m.leave(r)
		r.Status, r.Worker, r.Started = protocol.InProgress, t.Worker, now
		r.lease, r.leaseEnd = t.Lease, now.Add(t.Lease)
		m.running++
		m.busy[t.Worker]++
		m.reschedule(r)
		jobs = append(jobs, r.Job)
	}
	return jobs
}

// dispatch hands waiting jobs to waiting takers, the first to the first.
func (m *Memory) dispatch() {
	for {
		first := m.takers.Front()
		if first == nil {
			return
		}
		w := first.Value.(*taker)
		jobs := m.takeNow(w.Take)
		if len(jobs) == 0 {
			return
		}
		m.takers.Remove(first)
		w.jobs <- jobs
	}
}

// Untake implements Store.
func (m *Memory) Untake(_ context.Context, worker string, ids []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := len(ids) - 1; i >= 0; i-- {
		r, err := m.find(ids[i])
		if err != nil || r.Status != protocol.InProgress || r.Worker != worker {
			continue // it has ended meanwhile, or a sweep was faster
		}
		m.toFront(r)
		r.Worker, r.Started = "", time.Time{}
	}
	m.dispatch()
	return nil
}

// toFront puts a running job back. Its worker and start stay, as those of the attempt that was.
func (m *Memory) toFront(r *record) {
	m.leave(r)
	r.Status = protocol.InQueue
	r.place = m.queue.PushFront(r)
	m.reschedule(r)
}

// Renew implements Store.
func (m *Memory) Renew(_ context.Context, worker string, ids []string) (lost []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, id := range ids {
		r, err := m.find(id)
		switch {
		case err != nil, !r.heldBy(worker):
			lost = append(lost, id)
		case r.Status == protocol.Completed: // its own result has overtaken the ping
		case r.Status.Terminal():
			lost = append(lost, id)
		case r.Status == protocol.InProgress:
			r.renew(now)
			m.reschedule(r)
		}
	}
	return lost, nil
}

func (r *record) renew(now time.Time) { r.leaseEnd = now.Add(r.lease) }

// heldBy reports whether a worker is the last that took a job. A worker that was given a URL
// template without its id calls itself "$RUNPOD_POD_ID" on some routes and by its id on others, so
// such a name stands for any.
func (r *record) heldBy(worker string) bool {
	if r.Started.IsZero() {
		return false
	}
	return r.Worker == worker || strings.HasPrefix(r.Worker, "$") || strings.HasPrefix(worker, "$")
}

// history keeps the records in the order of submission.
type history struct {
	records []*record
	dropped int
}

func (h *history) add(r *record) { h.records = append(h.records, r) }

// drop forgets a record: its data now, its slot when half of the slots are dead.
func (h *history) drop(r *record) {
	r.gone = true
	r.Payload, r.Output, r.chunks = nil, nil, nil
	if h.dropped++; h.dropped <= len(h.records)/2 {
		return
	}
	live := make([]*record, 0, len(h.records)-h.dropped)
	for _, r := range h.records {
		if !r.gone {
			live = append(live, r)
		}
	}
	h.records, h.dropped = live, 0
}
