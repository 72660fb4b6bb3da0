package store_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// Room runs out for those that ended first, and never for what still has to run.
func TestRetainBytes(t *testing.T) {
	m := store.NewMemory(time.Now)
	m.RetainBytes = 10_000
	end := func(id string, bytes int) {
		_, err := m.Finish(t.Context(), id, "", store.End{Status: protocol.Completed, Output: make(json.RawMessage, bytes)})
		require.NoError(t, err)
	}
	known := func(id string) bool { _, err := m.Get(t.Context(), id); return err == nil }
	for _, id := range []string{"a", "b", "c", "d", "waiting"} {
		_, err := m.Enqueue(t.Context(), job(id))
		require.NoError(t, err)
	}
	end("b", 4000)
	end("a", 4000)
	require.True(t, known("a") && known("b"))
	end("c", 1000)
	require.False(t, known("b"), "it ended first")
	require.True(t, known("a") && known("c"))
	end("d", 50_000)
	require.True(t, known("d"), "the newest stays, whatever its size")
	require.False(t, known("a") || known("c"))
	require.True(t, known("waiting"))
	_, err := m.Requeue(t.Context(), "d")
	require.ErrorIs(t, err, store.ErrNotFailed)
}

// What is held stays for its reader, and from then on is the newest that ended.
func TestAHeldJobStays(t *testing.T) {
	m := store.NewMemory(time.Now)
	m.RetainBytes = 1
	run := func(j store.Job) {
		_, err := m.Enqueue(t.Context(), j)
		require.NoError(t, err)
		_, err = m.Take(t.Context(), store.Take{Worker: "w", Max: 1, Lease: lease})
		require.NoError(t, err)
		require.NoError(t, m.AppendChunks(t.Context(), j.ID, "w", json.RawMessage(`1`)))
		_, err = m.Finish(t.Context(), j.ID, "w", ok(`1`))
		require.NoError(t, err)
	}
	known := func(id string) bool { _, err := m.Get(t.Context(), id); return err == nil }
	held := job("held")
	held.Held = true
	run(held)
	run(job("a"))
	run(job("b"))
	require.False(t, known("a"))
	got, chunks, err := m.DrainChunks(t.Context(), "held")
	require.NoError(t, err)
	require.Equal(t, protocol.Completed, got.Status)
	require.Len(t, chunks, 1)
	for range 2 {
		require.NoError(t, m.Release(t.Context(), "held"))
	}
	require.True(t, known("held"))
	require.False(t, known("b"))
	run(job("c"))
	require.False(t, known("held"))
	require.ErrorIs(t, m.Release(t.Context(), "held"), protocol.ErrUnknownJob)
}

// Whoever waits for a job gets it, even if it is deleted before the waiter has woken up.
func TestAWaiterGetsWhatIsNotKept(t *testing.T) {
	m := store.NewMemory(time.Now)
	m.RetainBytes = 1
	const jobs = 200
	var all sync.WaitGroup
	for n := range jobs {
		id := fmt.Sprint(n)
		_, err := m.Enqueue(t.Context(), job(id))
		require.NoError(t, err)
		all.Go(func() {
			got, err := m.Wait(t.Context(), id, store.Ended, time.Hour)
			if err != nil || string(got.Output) != id {
				t.Errorf("job %s: %v %s", id, err, got.Output)
			}
		})
	}
	for waiting := 0; waiting < jobs; waiting = m.Waiting() {
		runtime.Gosched()
	}
	for n := range jobs {
		_, err := m.Finish(t.Context(), fmt.Sprint(n), "", ok(fmt.Sprint(n)))
		require.NoError(t, err)
	}
	all.Wait()
}

// A million jobs take no more room than the bound says.
func TestMemoryIsFlat(t *testing.T) {
	const bound = 8 << 20
	jobs := 1_000_000
	if raceDetector {
		jobs /= 10 // it makes everything ten times as slow
	}
	m := store.NewMemory(time.Now)
	m.RetainBytes = bound
	var heap []uint64
	for n := range jobs {
		id := fmt.Sprint(n)
		_, err := m.Enqueue(t.Context(), job(id))
		require.NoError(t, err)
		_, err = m.Take(t.Context(), store.Take{Worker: "w", Max: 1, Lease: lease})
		require.NoError(t, err)
		_, err = m.Finish(t.Context(), id, "w", ok(`{"n":`+id+`}`))
		require.NoError(t, err)
		if (n+1)%(jobs/10) == 0 {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			heap = append(heap, stats.HeapAlloc)
		}
	}
	t.Logf("heap after every tenth of the jobs: %d", heap)
	for _, now := range heap {
		require.Less(t, now, uint64(2*bound))
	}
}
