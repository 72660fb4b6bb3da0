package emulator

import (
	"context"
	"slices"
	"sync"
	"time"
)

// maxPending bounds the stops kept for a worker that does not ask for them.
const maxPending = 1000

// stops carries ids of jobs to the workers that should stop them.
type stops struct {
	now    func() time.Time
	mu     sync.Mutex
	boxes  map[string]*stopBox // by worker
	closed bool
}

type stopBox struct {
	used    time.Time       // the latest post or call
	pending []string        // nobody asked yet
	polls   []chan []string // calls that wait; each is answered once
}

func newStops(now func() time.Time) *stops {
	return &stops{now: now, boxes: map[string]*stopBox{}}
}

// post hands an id to the worker's waiting calls, or keeps it for the next. Workers that go by the
// same name all get it: one that does not have the job ignores it.
func (s *stops) post(worker, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.box(worker)
	if len(b.polls) == 0 {
		if !slices.Contains(b.pending, id) && len(b.pending) < maxPending {
			b.pending = append(b.pending, id)
		}
		return
	}
	for _, poll := range b.polls {
		poll <- []string{id}
	}
	b.polls = nil
}

// retract forgets an id that has not been handed over.
func (s *stops) retract(worker, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.boxes[worker]; b != nil {
		b.pending = slices.DeleteFunc(b.pending, func(other string) bool { return other == id })
	}
}

// wait returns the worker's stops, as soon as there are any. Those that get lost on the way to it are
// posted again when it goes on naming their jobs in its pings.
func (s *stops) wait(ctx context.Context, worker string, hold time.Duration) []string {
	s.mu.Lock()
	b := s.box(worker)
	if ctx.Err() != nil {
		s.mu.Unlock()
		return nil
	}
	if len(b.pending) > 0 || s.closed {
		ids := b.pending
		b.pending = nil
		s.mu.Unlock()
		return ids
	}
	poll := make(chan []string, 1)
	b.polls = append(b.polls, poll)
	s.mu.Unlock()

	timer := time.NewTimer(hold)
	defer timer.Stop()
	select {
	case ids := <-poll:
		return ids
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.polls = slices.DeleteFunc(b.polls, func(other chan []string) bool { return other == poll })
	select {
	case ids := <-poll:
		return ids
	default:
		return nil
	}
}

// forget drops what nobody has added to or asked for since a time: its worker is gone, or does not ask.
func (s *stops) forget(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for worker, b := range s.boxes {
		if len(b.polls) == 0 && b.used.Before(since) {
			delete(s.boxes, worker)
		}
	}
}

// close answers every waiting call with nothing.
func (s *stops) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, b := range s.boxes {
		for _, poll := range b.polls {
			close(poll)
		}
		b.polls = nil
	}
}

func (s *stops) box(worker string) *stopBox {
	b := s.boxes[worker]
	if b == nil {
		b = &stopBox{}
		s.boxes[worker] = b
	}
	b.used = s.now()
	return b
}
