package realtime

import (
	"context"
	"errors"
	"slices"
	"sync"
)

var errDraining = errors.New("the worker is stopping")

// slots are as many as jobs may run at a time. Who finds none free waits in line.
type slots struct {
	limit func() int // 0 for any number

	mu      sync.Mutex
	running int
	line    []chan error // each gets nil with its slot, or why there is none
	closed  bool
	empty   chan struct{} // closed when the last job has ended after close
}

func newSlots(limit func() int) *slots { return &slots{limit: limit, empty: make(chan struct{})} }

// take waits for a slot, in the order of the calls. The error says why there is none.
func (s *slots) take(ctx context.Context) error {
	turn := make(chan error, 1)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errDraining
	}
	s.line = append(s.line, turn)
	s.admit()
	s.mu.Unlock()
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
	}
	if !s.leave(turn) && <-turn == nil {
		s.give() // it came too late
	}
	return context.Cause(ctx)
}

// leave takes somebody out of the line, if he is still in it.
func (s *slots) leave(turn chan error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line, turn)
	if i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
	}
	return i >= 0
}

// give returns a slot.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.admit()
	if s.closed && s.running == 0 {
		close(s.empty)
	}
}

// admit lets in who there is room for. The lock is held.
func (s *slots) admit() {
	for limit := s.limit(); len(s.line) > 0 && (limit <= 0 || s.running < limit); s.line = s.line[1:] {
		s.running++
		s.line[0] <- nil
	}
}

// follow lets in who is waiting when the limit has changed.
func (s *slots) follow(ctx context.Context, resized <-chan struct{}) {
	for {
		select {
		case <-resized:
			s.mu.Lock()
			s.admit()
			s.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// close turns away who is waiting, and who will come.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, turn := range s.line {
		turn <- errDraining
	}
	s.line = nil
	if s.running == 0 {
		close(s.empty)
	}
}

// awaitEmpty waits, after close, until no job runs or ctx ends.
func (s *slots) awaitEmpty(ctx context.Context) {
	select {
	case <-s.empty:
	case <-ctx.Done():
	}
}
