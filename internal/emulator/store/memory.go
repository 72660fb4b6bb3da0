package store

import (
	"container/heap"
	"container/list"
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
)

// Memory is the Store of one process. One lock guards everything; nothing waits under it.
type Memory struct {
	// RetainBytes bounds what the jobs that have ended take up; beyond it, those that ended first are
	// deleted before their time. 0 is no bound. It is set before the first use.
	RetainBytes int64

	now func() time.Time

	mu     sync.Mutex
	jobs   map[string]*record
	queue  line      // waiting to be taken
	ended  line      // kept for their clients
	kept   int64     // bytes of those
	takers list.List // of *taker, waiting for jobs; meanwhile the queue has only jobs past their ttl, if any
	clock  deadlines // of all records
	log    history
	closed bool

	running, completed, failed, retried int
	busy                                map[string]int // running jobs by worker
}

// record is a job and what only the store knows of it.
type record struct {
	Job
	dies     time.Time // when its ttl is over
	lease    time.Duration
	leaseEnd time.Time
	before   attempt           // what the last take found
	chunks   []json.RawMessage // not drained yet
	waiters  []*waiter
	in       *line // queue, ended or none
	prev     *record
	next     *record
	size     int64 // while it is kept
	deadline time.Time
	index    int // in the heap of deadlines
	gone     bool
}

// attempt is one handing out of a job.
type attempt struct {
	worker  string
	started time.Time
}

// NewMemory is an empty store that reads the time from now.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, jobs: map[string]*record{}, busy: map[string]int{}}
}

// Enqueue implements Store.
func (m *Memory) Enqueue(_ context.Context, job Job) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.jobs[job.ID]; taken {
		return Job{}, ErrExists
	}
	now := m.now()
	r := &record{dies: now.Add(job.Policy.TTL), Job: Job{
		ID: job.ID, Payload: job.Payload, Policy: job.Policy, Webhook: job.Webhook, Held: job.Held,
		Status: protocol.InQueue, Created: now,
	}}
	m.jobs[r.ID] = r
	m.log.add(r)
	r.deadline = r.nextDeadline()
	heap.Push(&m.clock, r)
	m.queue.pushBack(r)
	queued := r.Job
	m.dispatch()
	return queued, nil
}

// Get implements Store.
func (m *Memory) Get(_ context.Context, id string) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(id)
	if err != nil {
		return Job{}, err
	}
	return r.Job, nil
}

// Counts implements Store.
func (m *Memory) Counts(context.Context) (Counts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	busy := make(map[string]int, len(m.busy))
	maps.Copy(busy, m.busy)
	return Counts{
		InQueue: m.queue.len, InProgress: m.running,
		Completed: m.completed, Failed: m.failed, Retried: m.retried,
		Busy: busy,
	}, nil
}

// List implements Store.
func (m *Memory) List(_ context.Context, limit int) ([]Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var jobs []Job
	now := m.now()
	for i := len(m.log.records) - 1; i >= 0 && len(jobs) < limit; i-- {
		if r := m.log.records[i]; !r.gone && !r.expired(now) {
			jobs = append(jobs, r.Job)
		}
	}
	return jobs, nil
}

// Purge implements Store.
func (m *Memory) Purge(context.Context) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for ; m.queue.first != nil; n++ {
		m.remove(m.queue.first)
	}
	return n, nil
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for e := m.takers.Front(); e != nil; e = m.takers.Front() {
		close(m.takers.Remove(e).(*taker).jobs)
	}
	for _, r := range m.jobs {
		r.wake(true)
	}
	return nil
}

// find is a record that clients may still know of.
func (m *Memory) find(id string) (*record, error) {
	r := m.jobs[id]
	if r == nil || r.expired(m.now()) {
		return nil, protocol.ErrUnknownJob
	}
	return r, nil
}

// remove deletes a record in whatever state. Whoever waits for it learns that it is unknown.
func (m *Memory) remove(r *record) {
	m.leave(r)
	delete(m.jobs, r.ID)
	heap.Remove(&m.clock, r.index)
	r.wake(true)
	m.log.drop(r)
}

// leave takes a record out of its line, or from its worker.
func (m *Memory) leave(r *record) {
	switch {
	case r.in != nil:
		r.in.remove(r)
		m.kept, r.size = m.kept-r.size, 0
	case r.Status == protocol.InProgress:
		m.running--
		if m.busy[r.Worker]--; m.busy[r.Worker] <= 0 {
			delete(m.busy, r.Worker)
		}
	}
}
