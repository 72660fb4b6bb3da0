package store_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

func TestMemory(t *testing.T) {
	conform(t, func(_ *testing.T, now func() time.Time) store.Store { return store.NewMemory(now) })
}

func job(id string) store.Job { return store.Job{ID: id, Payload: payload(id), Policy: policy} }

// One new job wakes one worker, the one that has waited longest.
func TestTakersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got := store.NewMemory(time.Now), make(chan string, 10)
		for w := range 3 {
			go func() {
				jobs, _ := m.Take(t.Context(), store.Take{Worker: fmt.Sprint(w), Max: 2, Lease: lease, Wait: time.Hour})
				got <- fmt.Sprint(w, len(jobs))
			}()
			synctest.Wait()
		}
		for w := range 3 {
			_, err := m.Enqueue(t.Context(), job(fmt.Sprint(w)))
			require.NoError(t, err)
			synctest.Wait()
			require.Len(t, got, 1)
			require.Equal(t, fmt.Sprint(w, 1), <-got)
		}
	})
}

func TestATakerThatGaveUpGetsNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got := store.NewMemory(time.Now), make(chan int, 10)
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(ctx context.Context, d time.Duration) {
			jobs, _ := m.Take(ctx, store.Take{Worker: "w", Max: 1, Lease: lease, Wait: d})
			got <- len(jobs)
		}
		go wait(ctx, time.Hour)
		synctest.Wait()
		go wait(t.Context(), time.Second)
		synctest.Wait()
		go wait(t.Context(), time.Hour)
		cancel()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 0, <-got)
		require.Equal(t, 0, <-got)
		_, err := m.Enqueue(t.Context(), job("a"))
		require.NoError(t, err)
		require.Equal(t, 1, <-got)
	})
}

func TestUntakeAndLeaseEndWakeATaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got := store.NewMemory(time.Now), make(chan int, 1)
		_, err := m.Enqueue(t.Context(), job("a"))
		require.NoError(t, err)
		take := func(wait time.Duration) {
			jobs, _ := m.Take(t.Context(), store.Take{Worker: "w", Max: 1, Lease: lease, Wait: wait})
			got <- len(jobs)
		}
		take(0)
		require.Equal(t, 1, <-got)
		go take(time.Hour)
		synctest.Wait()
		require.NoError(t, m.Untake(t.Context(), "w", []string{"a"}))
		require.Equal(t, 1, <-got)
		go take(time.Hour)
		time.Sleep(lease)
		_, err = m.Sweep(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, 1, <-got)
	})
}

// A job past its ttl wakes nobody, until it is given a new one.
func TestANewTTLWakesATaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got := store.NewMemory(time.Now), make(chan int, 1)
		a := job("a")
		a.Policy.TTLTimesOut, a.Policy.TTL = true, time.Minute
		_, err := m.Enqueue(t.Context(), a)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		go func() {
			jobs, _ := m.Take(t.Context(), store.Take{Worker: "w", Max: 1, Lease: lease, Wait: time.Second})
			got <- len(jobs)
		}()
		synctest.Wait()
		require.Empty(t, got)
		_, err = m.SetTTL(t.Context(), "a", time.Hour)
		require.NoError(t, err)
		require.Equal(t, 1, <-got)
	})
}

func TestAWaiterLearnsThatItsJobIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, got := store.NewMemory(time.Now), make(chan error, 1)
		_, err := m.Enqueue(t.Context(), job("a"))
		require.NoError(t, err)
		go func() {
			_, err := m.Wait(t.Context(), "a", store.Ended, time.Hour)
			got <- err
		}()
		synctest.Wait()
		_, err = m.Purge(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, <-got, protocol.ErrUnknownJob)
	})
}

// A take costs the same however long the queue is.
func BenchmarkTake(b *testing.B) {
	for _, waiting := range []int{100, 100_000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			m := store.NewMemory(time.Now)
			n := 0
			add := func() {
				_, _ = m.Enqueue(b.Context(), job(fmt.Sprint(n)))
				n++
			}
			for range waiting {
				add()
			}
			b.ReportAllocs()
			for b.Loop() {
				jobs, _ := m.Take(b.Context(), store.Take{Worker: "w", Max: 1, Lease: lease})
				_, _ = m.Finish(b.Context(), jobs[0].ID, "w", ok(`1`))
				add()
			}
		})
	}
}
