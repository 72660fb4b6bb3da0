package store

import (
	"context"
	"slices"
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
	var next *record
	for r := m.queue.first; r != nil && len(jobs) < t.Max; r = next {
		next = r.next
		if r.expired(now) {
			m.remove(r)
			continue
		}
		if r.outlived(now) {
			continue // it stays in line: the next sweep ends it, unless it is given a new ttl
		}
		m.leave(r)
		r.before = attempt{r.Worker, r.Started}
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
	for _, id := range slices.Backward(ids) {
		r, err := m.find(id)
		if err != nil || r.Status != protocol.InProgress || r.Worker != worker {
			continue // it has ended meanwhile, or a sweep was faster
		}
		m.toFront(r)
		r.Worker, r.Started = r.before.worker, r.before.started
	}
	m.dispatch()
	return nil
}

// toFront puts a running job back. Its worker and start stay, as those of the attempt that was.
func (m *Memory) toFront(r *record) {
	m.leave(r)
	r.Status = protocol.InQueue
	m.queue.pushFront(r)
	m.reschedule(r)
}
