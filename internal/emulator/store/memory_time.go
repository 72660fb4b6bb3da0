package store

import (
	"container/heap"
	"context"
	"fmt"
	"time"

	"runpodctl-worker/internal/protocol"
)

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
		case !now.Before(r.Started.Add(r.Policy.Execution)):
			m.end(r, End{Status: protocol.Failed, Error: ExecutionTimeout})
		case r.Retries >= r.Policy.MaxRetries:
			m.end(r, End{Status: protocol.Failed, Error: fmt.Sprintf(Unacknowledged, r.Retries)})
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

// expired reports whether clients no longer know the job.
func (r *record) expired(now time.Time) bool {
	return !now.Before(r.Created.Add(r.Policy.TTL)) ||
		r.Status.Terminal() && !now.Before(r.Ended.Add(r.Policy.Retention))
}

// nextDeadline is when time alone changes the job next.
func (r *record) nextDeadline() time.Time {
	next := r.Created.Add(r.Policy.TTL)
	switch {
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

// deadlines is a heap of records, the most urgent first.
type deadlines []*record

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *deadlines) Push(x any) {
	r := x.(*record)
	r.index = len(*d)
	*d = append(*d, r)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return r
}
