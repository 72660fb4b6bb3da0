package store

import (
	"container/heap"
	"context"
	"fmt"
	"strings"
	"time"

	"runpodctl-worker/internal/protocol"
)

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

// heldBy reports whether a worker is the last that took a job.
func (r *record) heldBy(worker string) bool {
	if r.Started.IsZero() {
		return false
	}
	return r.Worker == worker || isPlaceholder(r.Worker) || isPlaceholder(worker)
}

// isPlaceholder recognizes a worker that calls itself "$RUNPOD_POD_ID". The official worker does so on
// some routes, for want of its id in the URL template, and goes by its id on others.
func isPlaceholder(worker string) bool { return strings.HasPrefix(worker, "$") }

// Sweep implements Store.
func (m *Memory) Sweep(_ context.Context, limit int) ([]Due, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var due []Due
	now := m.now()
	for len(due) < limit && len(m.clock) > 0 && !m.clock[0].deadline.After(now) {
		r := m.clock[0]
		d := Due{Job: r.Job}
		switch {
		case r.expired(now):
			m.remove(r)
			d.Gone = true
		case r.outlived(now):
			m.end(r, "", End{Status: protocol.TimedOut, Error: TTLExceeded})
		case !now.Before(r.Started.Add(r.Policy.Execution)):
			m.end(r, "", End{Status: verdict(r.Policy.ExecutionTimesOut), Error: ExecutionTimeout})
		case r.Retries >= r.Policy.MaxRetries:
			m.end(r, "", End{Status: verdict(r.Policy.SilenceTimesOut), Error: fmt.Sprintf(Unacknowledged, r.Retries)})
		default:
			r.Retries++
			m.retried++
			m.toFront(r)
		}
		if !d.Gone {
			d.Job = r.Job
		}
		due = append(due, d)
	}
	m.dispatch()
	return due, nil
}

func verdict(timesOut bool) protocol.Status {
	if timesOut {
		return protocol.TimedOut
	}
	return protocol.Failed
}

// expired reports whether clients no longer know the job.
func (r *record) expired(now time.Time) bool {
	return !r.Policy.TTLTimesOut && !now.Before(r.dies) ||
		r.Status.Terminal() && !now.Before(r.Ended.Add(r.Policy.Retention))
}

// outlived reports whether the job must not go on, although clients are to know of it.
func (r *record) outlived(now time.Time) bool {
	return r.Policy.TTLTimesOut && !r.Status.Terminal() && !now.Before(r.dies)
}

// SetTTL implements Store.
func (m *Memory) SetTTL(_ context.Context, id string, ttl time.Duration) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(id)
	if err != nil {
		return Job{}, err
	}
	r.dies = m.now().Add(ttl)
	m.reschedule(r)
	m.dispatch() // it may have been in line, past its ttl
	return r.Job, nil
}

// nextDeadline is when time alone changes the job next.
func (r *record) nextDeadline() time.Time {
	next := r.dies
	switch {
	case r.Status.Terminal() && r.Policy.TTLTimesOut:
		next = r.Ended.Add(r.Policy.Retention)
	case r.Status.Terminal():
		next = earlier(next, r.Ended.Add(r.Policy.Retention))
	case r.Status == protocol.InProgress:
		next = earlier(next, earlier(r.leaseEnd, r.Started.Add(r.Policy.Execution)))
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (m *Memory) reschedule(r *record) {
	r.deadline = r.nextDeadline()
	heap.Fix(&m.clock, r.index)
}
