package realtime

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(func() int { return 1 })
		var served []string
		enter := func(ctx context.Context, name string) {
			go func() {
				if err := s.take(ctx); err != nil {
					name += ": " + err.Error()
				}
				served = append(served, name) // one at a time, by the waits below
			}()
			synctest.Wait()
		}
		impatient, leave := context.WithCancelCause(t.Context())
		enter(t.Context(), "a")
		enter(impatient, "b")
		enter(t.Context(), "c")
		enter(t.Context(), "d")
		require.Equal(t, []string{"a"}, served)
		leave(errors.New("gone"))
		synctest.Wait()
		require.Equal(t, []string{"a", "b: gone"}, served)
		s.give()
		synctest.Wait()
		require.Equal(t, []string{"a", "b: gone", "c"}, served, "in their order, without who has left")
		s.close()
		synctest.Wait()
		enter(t.Context(), "e")
		require.Equal(t, []string{"d: the worker is stopping", "e: the worker is stopping"}, served[3:])
		over, cancel := context.WithCancel(t.Context())
		cancel()
		s.awaitEmpty(over)
		s.give()
		s.awaitEmpty(t.Context())
	})
}

// A slot that is granted to somebody who has just left is not lost.
func TestSlots_NoneIsLost(t *testing.T) {
	s := newSlots(func() int { return 1 })
	for range 1000 {
		require.NoError(t, s.take(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { done <- s.take(ctx) == nil }()
		go cancel()
		s.give()
		if <-done {
			s.give()
		}
	}
	require.Zero(t, s.running)
	require.Empty(t, s.line)
}
