package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// conform is what every Store must do. open makes an empty one that reads the time from now.
func conform(t *testing.T, open func(t *testing.T, now func() time.Time) store.Store) {
	for name, test := range map[string]func(*testing.T, *bench){
		"jobs are taken in order":                  takenInOrder,
		"a job is taken once":                      takenOnce,
		"a take waits for a job":                   takeWaits,
		"a take gives up":                          takeGivesUp,
		"untaken jobs go to the front":             untake,
		"untake leaves what moved on alone":        untakeLate,
		"untake gives the job back to its holder":  untakeHeld,
		"a job ends once":                          endsOnce,
		"many want to end one job":                 endRace,
		"only the holder ends a job":               holderEnds,
		"a nameless worker stands for any":         nameless,
		"progress replaces the output":             progress,
		"chunks are drained once":                  chunks,
		"reports on jobs that are not running":     reportsRefused,
		"a wait ends with the job":                 waitEnds,
		"a wait ends with a chunk":                 waitChunk,
		"a wait ends by itself":                    waitGivesUp,
		"a silent worker loses its job":            leaseEnds,
		"a ping keeps it":                          leaseRenewed,
		"a report keeps it":                        leaseReported,
		"a late result of a job that waits again":  lateResult,
		"renew tells what is lost":                 renewLost,
		"an execution takes too long":              executionEnds,
		"a job outlives its ttl":                   ttlEnds,
		"a result is kept for a while":             retentionEnds,
		"expired means unknown before any sweep":   expired,
		"sweep stops at its limit":                 sweepLimit,
		"a failed job is given a fresh start":      requeue,
		"a retried job has its ttl anew":           requeueTTL,
		"a ttl is set anew":                        newTTL,
		"time makes a job TIMED_OUT, if so told":   timesOut,
		"a take leaves what outlived its ttl":      takeLeavesOutlived,
		"a late update reopens a job, if so told":  lateProgress,
		"only its worker reopens a job":            reopenedByHolder,
		"a reopened job counts once":               reopenedCounts,
		"purge deletes what waits":                 purge,
		"counts":                                   counts,
		"list, newest first":                       listed,
		"ids are unique":                           unique,
		"close ends waits":                         closes,
		"unknown jobs":                             unknown,
		"every end is one end, whoever takes part": hammer,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), ctx: t.Context()}
			b.Store = open(t, b.now)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			test(t, b)
		})
	}
}

// bench is a store under test with a clock to turn.
type bench struct {
	store.Store
	ctx context.Context
	mu  sync.Mutex
	at  time.Time
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
}

var policy = store.Policy{Execution: 10 * time.Minute, TTL: 24 * time.Hour, Retention: time.Minute, MaxRetries: 1}

const lease = 40 * time.Second

func (b *bench) add(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		job, err := b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: policy})
		require.NoError(t, err)
		require.Equal(t, protocol.InQueue, job.Status)
	}
}

func payload(id string) json.RawMessage { return json.RawMessage(`{"id":"` + id + `","input":{}}`) }

// take takes without waiting and returns the ids.
func (b *bench) take(t *testing.T, worker string, n int) []string {
	t.Helper()
	jobs, err := b.Take(b.ctx, store.Take{Worker: worker, Max: n, Lease: lease})
	require.NoError(t, err)
	ids := make([]string, len(jobs))
	for i, job := range jobs {
		require.Equal(t, payload(job.ID), job.Payload)
		require.Equal(t, protocol.InProgress, job.Status)
		require.Equal(t, worker, job.Worker)
		require.Equal(t, b.now(), job.Started.In(time.UTC))
		ids[i] = job.ID
	}
	return ids
}

func (b *bench) get(t *testing.T, id string) store.Job {
	t.Helper()
	job, err := b.Get(b.ctx, id)
	require.NoError(t, err)
	return job
}

func (b *bench) sweep(t *testing.T) []store.Due {
	t.Helper()
	due, err := b.Sweep(b.ctx, 100)
	require.NoError(t, err)
	return due
}

func ok(output string) store.End {
	return store.End{Status: protocol.Completed, Output: json.RawMessage(output)}
}

func takenInOrder(t *testing.T, b *bench) {
	b.add(t, "a", "b", "c", "d")
	require.Equal(t, []string{"a"}, b.take(t, "w", 1))
	require.Equal(t, []string{"b", "c"}, b.take(t, "w", 2))
	require.Equal(t, []string{"d"}, b.take(t, "w", 2))
	require.Empty(t, b.take(t, "w", 2))
}

func takenOnce(t *testing.T, b *bench) {
	const jobs = 200
	for i := range jobs {
		b.add(t, fmt.Sprint(i))
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for {
				got, err := b.Take(b.ctx, store.Take{Worker: fmt.Sprint(w), Max: 3, Lease: lease})
				if err != nil || len(got) == 0 {
					return
				}
				mu.Lock()
				for _, job := range got {
					seen[job.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, jobs)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}

func takeWaits(t *testing.T, b *bench) {
	got := make(chan []store.Job, 1)
	go func() {
		jobs, _ := b.Take(b.ctx, store.Take{Worker: "w", Max: 4, Lease: lease, Wait: time.Minute})
		got <- jobs
	}()
	b.add(t, "a")
	jobs := <-got
	require.Len(t, jobs, 1)
	require.Equal(t, "a", jobs[0].ID)
	require.Equal(t, protocol.InProgress, b.get(t, "a").Status)
}

func takeGivesUp(t *testing.T, b *bench) {
	jobs, err := b.Take(b.ctx, store.Take{Worker: "w", Max: 1, Lease: lease, Wait: time.Millisecond})
	require.NoError(t, err)
	require.Empty(t, jobs)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	b.add(t, "a")
	jobs, err = b.Take(ctx, store.Take{Worker: "w", Max: 1, Lease: lease, Wait: time.Hour})
	require.NoError(t, err)
	require.Empty(t, jobs, "a caller that has gone gets no job")
	require.Equal(t, protocol.InQueue, b.get(t, "a").Status)
}

func untake(t *testing.T, b *bench) {
	b.add(t, "a", "b", "c")
	require.Equal(t, []string{"a", "b"}, b.take(t, "w", 2))
	require.NoError(t, b.Untake(b.ctx, "w", []string{"a", "b"}))
	job := b.get(t, "a")
	require.Equal(t, protocol.InQueue, job.Status)
	require.Empty(t, job.Worker)
	require.True(t, job.Started.IsZero())
	require.Zero(t, job.Retries)
	require.Equal(t, []string{"a", "b", "c"}, b.take(t, "v", 3))
}

func untakeLate(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	b.take(t, "w", 2)
	_, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err)
	require.NoError(t, b.Untake(b.ctx, "w", []string{"a", "x"}))
	require.NoError(t, b.Untake(b.ctx, "v", []string{"b"}))
	require.Equal(t, protocol.Completed, b.get(t, "a").Status)
	require.Equal(t, protocol.InProgress, b.get(t, "b").Status)
}

// A worker that is silent for a while still has the job. That it is handed out again, to the same worker or another, on a
// connection that breaks, must not cost the worker its result.
func untakeHeld(t *testing.T, b *bench) {
	for _, taker := range []string{"w", "v"} {
		b.add(t, taker)
		b.take(t, "w", 1)
		started := b.get(t, taker).Started
		b.pass(lease)
		require.Len(t, b.sweep(t), 1)
		require.Equal(t, []string{taker}, b.take(t, taker, 1))
		require.NoError(t, b.Untake(b.ctx, taker, []string{taker}))
		require.Equal(t, started, b.get(t, taker).Started)
		_, err := b.Finish(b.ctx, taker, "w", ok(`1`))
		require.NoError(t, err)
	}
}

func endsOnce(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	b.pass(time.Second)
	job, err := b.Finish(b.ctx, "a", "w", store.End{Status: protocol.Failed, Output: json.RawMessage(`1`), Error: "boom"})
	require.NoError(t, err)
	require.Equal(t, protocol.Failed, job.Status)
	require.Equal(t, "boom", job.Error)
	require.Equal(t, json.RawMessage(`1`), job.Output)
	require.Equal(t, time.Second, job.Ended.Sub(job.Started))
	for _, worker := range []string{"w", ""} {
		job, err = b.Finish(b.ctx, "a", worker, ok(`2`))
		require.ErrorIs(t, err, protocol.ErrJobSettled)
		require.Equal(t, protocol.Failed, job.Status)
	}
	require.Equal(t, json.RawMessage(`1`), b.get(t, "a").Output)
}

func endRace(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			worker := []string{"", "w"}[i%2]
			if _, err := b.Finish(b.ctx, "a", worker, ok(fmt.Sprint(i))); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, won.Load())
}

func holderEnds(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	b.take(t, "w", 1)
	_, err := b.Finish(b.ctx, "a", "v", ok(`1`))
	require.ErrorIs(t, err, protocol.ErrNotHolder)
	_, err = b.Finish(b.ctx, "b", "w", ok(`1`))
	require.ErrorIs(t, err, protocol.ErrNotHolder, "nobody has taken it yet")
	_, err = b.Finish(b.ctx, "b", "", store.End{Status: protocol.Cancelled})
	require.NoError(t, err, "the platform may end any job")
	require.Empty(t, b.take(t, "w", 1), "a job that has ended is not in the queue")
}

func nameless(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	b.take(t, "$RUNPOD_POD_ID", 1)
	job, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err)
	require.Equal(t, "w", job.Worker)
	b.take(t, "w", 1)
	_, err = b.Finish(b.ctx, "b", "$RUNPOD_POD_ID", ok(`1`))
	require.NoError(t, err)
}

func progress(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	require.NoError(t, b.Progress(b.ctx, "a", "w", json.RawMessage(`1`)))
	require.NoError(t, b.Progress(b.ctx, "a", "w", json.RawMessage(`2`)))
	job := b.get(t, "a")
	require.Equal(t, json.RawMessage(`2`), job.Output)
	require.Equal(t, protocol.InProgress, job.Status)
	job, err := b.Finish(b.ctx, "a", "w", store.End{Status: protocol.Completed})
	require.NoError(t, err)
	require.Nil(t, job.Output, "an update is not a result")
}

func chunks(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	require.NoError(t, b.AppendChunks(b.ctx, "a", "w", raw(`1`)))
	require.NoError(t, b.AppendChunks(b.ctx, "a", "w", raw(`2`), raw(`3`)))
	job, got, err := b.DrainChunks(b.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, protocol.InProgress, job.Status)
	require.Equal(t, []json.RawMessage{raw(`1`), raw(`2`), raw(`3`)}, got)
	_, got, err = b.DrainChunks(b.ctx, "a")
	require.NoError(t, err)
	require.Empty(t, got)
	require.NoError(t, b.AppendChunks(b.ctx, "a", "w", raw(`4`)))
	_, err = b.Finish(b.ctx, "a", "w", ok(`[]`))
	require.NoError(t, err)
	job, got, err = b.DrainChunks(b.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, protocol.Completed, job.Status)
	require.Equal(t, []json.RawMessage{raw(`4`)}, got)
}

func reportsRefused(t *testing.T, b *bench) {
	b.add(t, "ended", "held", "queued")
	b.take(t, "w", 2)
	_, err := b.Finish(b.ctx, "ended", "w", ok(`1`))
	require.NoError(t, err)
	for id, want := range map[string]error{
		"ended": protocol.ErrJobSettled, "held": protocol.ErrNotHolder, "queued": protocol.ErrNotHolder, "x": protocol.ErrUnknownJob,
	} {
		worker := "v"
		if id == "ended" {
			worker = "w"
		}
		require.ErrorIs(t, b.Progress(b.ctx, id, worker, json.RawMessage(`9`)), want, id)
		require.ErrorIs(t, b.AppendChunks(b.ctx, id, worker, json.RawMessage(`9`)), want, id)
	}
	require.Equal(t, json.RawMessage(`1`), b.get(t, "ended").Output)
}

func waitEnds(t *testing.T, b *bench) {
	b.add(t, "a")
	got := make(chan store.Job, 2)
	for range 2 {
		go func() {
			job, _ := b.Wait(b.ctx, "a", store.Ended, time.Minute)
			got <- job
		}()
	}
	b.take(t, "w", 1)
	_, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, protocol.Completed, (<-got).Status)
	}
	job, err := b.Wait(b.ctx, "a", store.Ended, time.Hour)
	require.NoError(t, err)
	require.Equal(t, protocol.Completed, job.Status, "what has come is not waited for")
}

func waitChunk(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	got := make(chan store.Job, 1)
	go func() {
		job, _ := b.Wait(b.ctx, "a", store.EndedOrChunk, time.Minute)
		got <- job
	}()
	require.NoError(t, b.AppendChunks(b.ctx, "a", "w", json.RawMessage(`1`)))
	require.Equal(t, protocol.InProgress, (<-got).Status)
	_, err := b.Wait(b.ctx, "a", store.EndedOrChunk, time.Hour)
	require.NoError(t, err, "a chunk is there until it is drained")
}

func waitGivesUp(t *testing.T, b *bench) {
	b.add(t, "a")
	job, err := b.Wait(b.ctx, "a", store.Ended, time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, protocol.InQueue, job.Status)
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err = b.Wait(ctx, "a", store.Ended, time.Hour)
	require.NoError(t, err)
}

func leaseEnds(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	b.take(t, "w", 1)
	b.pass(lease - 1)
	require.Empty(t, b.sweep(t))
	b.pass(1)
	due := b.sweep(t)
	require.Len(t, due, 1)
	require.False(t, due[0].Gone)
	require.Equal(t, "w", due[0].Job.Worker)
	require.Equal(t, protocol.InQueue, due[0].Job.Status)
	require.Equal(t, 1, due[0].Job.Retries)
	require.Equal(t, []string{"a"}, b.take(t, "v", 1), "it has waited longest")
	b.pass(lease)
	due = b.sweep(t)
	require.Len(t, due, 1)
	require.Equal(t, protocol.Failed, due[0].Job.Status)
	require.Equal(t, "job timed out after 1 retries", due[0].Job.Error)
	require.Equal(t, lease, due[0].Job.Ended.Sub(due[0].Job.Started))
}

func leaseRenewed(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	for range 5 {
		b.pass(lease / 2)
		lost, err := b.Renew(b.ctx, "w", []string{"a"})
		require.NoError(t, err)
		require.Empty(t, lost)
		require.Empty(t, b.sweep(t))
	}
	b.pass(lease)
	require.Len(t, b.sweep(t), 1)
}

func leaseReported(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	b.pass(lease / 2)
	require.NoError(t, b.Progress(b.ctx, "a", "w", json.RawMessage(`1`)))
	b.pass(lease / 2)
	require.NoError(t, b.AppendChunks(b.ctx, "a", "w", json.RawMessage(`1`)))
	b.pass(lease / 2)
	require.Empty(t, b.sweep(t))
}

func lateResult(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	b.take(t, "w", 2)
	b.pass(lease)
	require.Len(t, b.sweep(t), 2)
	_, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err, "the work is done, so nobody need do it again")
	require.Equal(t, []string{"b"}, b.take(t, "v", 2))
	_, err = b.Finish(b.ctx, "b", "w", ok(`1`))
	require.ErrorIs(t, err, protocol.ErrNotHolder)
}

func renewLost(t *testing.T, b *bench) {
	b.add(t, "mine", "done", "cancelled", "other", "silent")
	b.take(t, "w", 3)
	b.take(t, "v", 1)
	_, err := b.Finish(b.ctx, "done", "w", ok(`1`))
	require.NoError(t, err)
	_, err = b.Finish(b.ctx, "cancelled", "", store.End{Status: protocol.Cancelled})
	require.NoError(t, err)
	lost, err := b.Renew(b.ctx, "w", []string{"mine", "done", "cancelled", "other", "deleted"})
	require.NoError(t, err)
	require.Equal(t, []string{"cancelled", "other", "deleted"}, lost)
}

func executionEnds(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	for range 20 {
		b.pass(lease * 3 / 4)
		_, err := b.Renew(b.ctx, "w", []string{"a"})
		require.NoError(t, err)
	}
	due := b.sweep(t)
	require.Len(t, due, 1)
	require.Equal(t, protocol.Failed, due[0].Job.Status)
	require.Equal(t, "executionTimeout exceeded", due[0].Job.Error)
	require.Equal(t, "w", due[0].Job.Worker)
	_, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.ErrorIs(t, err, protocol.ErrJobSettled)
}

func ttlEnds(t *testing.T, b *bench) {
	b.add(t, "queued")
	b.pass(policy.TTL - time.Second)
	b.add(t, "young")
	b.pass(time.Second)
	due := b.sweep(t)
	require.Len(t, due, 1)
	require.True(t, due[0].Gone)
	require.Equal(t, "queued", due[0].Job.ID)
	require.Equal(t, protocol.InQueue, due[0].Job.Status)
	require.Equal(t, []string{"young"}, b.take(t, "w", 2))
}

func retentionEnds(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	_, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err)
	b.pass(policy.Retention - 1)
	require.Empty(t, b.sweep(t))
	b.get(t, "a")
	b.pass(1)
	due := b.sweep(t)
	require.Len(t, due, 1)
	require.True(t, due[0].Gone)
	_, err = b.Get(b.ctx, "a")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
}

func expired(t *testing.T, b *bench) {
	b.add(t, "a")
	b.pass(policy.TTL)
	_, err := b.Get(b.ctx, "a")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	require.Empty(t, b.take(t, "w", 1), "a job past its ttl never starts")
	_, err = b.Finish(b.ctx, "a", "", store.End{Status: protocol.Cancelled})
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	jobs, err := b.List(b.ctx, 10)
	require.NoError(t, err)
	require.Empty(t, jobs)
}

func newTTL(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	b.pass(policy.TTL - time.Second)
	job, err := b.SetTTL(b.ctx, "a", time.Hour)
	require.NoError(t, err)
	require.Equal(t, "a", job.ID)
	_, err = b.SetTTL(b.ctx, "b", time.Millisecond)
	require.NoError(t, err)
	b.pass(time.Hour - 1)
	require.Len(t, b.sweep(t), 1)
	b.get(t, "a")
	b.pass(1)
	require.Len(t, b.sweep(t), 1)
	_, err = b.SetTTL(b.ctx, "a", time.Hour)
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
}

func timesOut(t *testing.T, b *bench) {
	p := policy
	p.ExecutionTimesOut, p.SilenceTimesOut, p.TTLTimesOut, p.TTL, p.MaxRetries = true, true, true, time.Hour, 0
	for _, id := range []string{"silent", "slow", "waiting"} {
		_, err := b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: p})
		require.NoError(t, err)
	}
	b.take(t, "w", 2)
	var ends []string
	for range 20 {
		b.pass(lease * 3 / 4)
		_, err := b.Renew(b.ctx, "w", []string{"slow"})
		require.NoError(t, err)
		for _, due := range b.sweep(t) {
			if !due.Gone {
				ends = append(ends, fmt.Sprint(due.Job.ID, " ", due.Job.Status, " ", due.Job.Error))
			}
		}
	}
	require.Equal(t, []string{"silent TIMED_OUT job timed out after 0 retries", "slow TIMED_OUT executionTimeout exceeded"}, ends)
	b.pass(50 * time.Minute)
	require.Empty(t, b.take(t, "w", 1), "a job past its ttl never starts")
	due := b.sweep(t)
	require.False(t, due[len(due)-1].Gone)
	require.Equal(t, protocol.TimedOut, b.get(t, "waiting").Status)
	require.Equal(t, "ttl exceeded", b.get(t, "waiting").Error)
	n, err := b.Counts(b.ctx)
	require.NoError(t, err)
	require.Zero(t, n.InQueue+n.InProgress)
	b.pass(p.Retention)
	_, err = b.Get(b.ctx, "waiting")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
}

// A job past its ttl stays in line for the sweep, so that a new ttl puts it back into play.
func takeLeavesOutlived(t *testing.T, b *bench) {
	p := policy
	p.TTLTimesOut, p.TTL = true, time.Minute
	for _, id := range []string{"a", "b"} {
		_, err := b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: p})
		require.NoError(t, err)
	}
	b.add(t, "c")
	b.pass(time.Minute)
	require.Equal(t, []string{"c"}, b.take(t, "w", 1), "what comes after them is taken")
	require.Empty(t, b.take(t, "w", 1))
	n, err := b.Counts(b.ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n.InQueue)
	require.Equal(t, protocol.InQueue, b.get(t, "a").Status)
	_, err = b.SetTTL(b.ctx, "a", time.Hour)
	require.NoError(t, err)
	require.Len(t, b.sweep(t), 1)
	require.Equal(t, protocol.TimedOut, b.get(t, "b").Status)
	require.Equal(t, []string{"a"}, b.take(t, "w", 2))
}

func lateProgress(t *testing.T, b *bench) {
	p := policy
	p.LateProgress = true
	_, err := b.Enqueue(b.ctx, store.Job{ID: "a", Payload: payload("a"), Policy: p})
	require.NoError(t, err)
	b.take(t, "w", 1)
	_, err = b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err)
	require.NoError(t, b.Progress(b.ctx, "a", "w", json.RawMessage(`"late"`)))
	job := b.get(t, "a")
	require.Equal(t, protocol.InProgress, job.Status)
	require.Equal(t, json.RawMessage(`"late"`), job.Output)
	n, err := b.Counts(b.ctx)
	require.NoError(t, err)
	require.Equal(t, store.Counts{InProgress: 1, Busy: map[string]int{"w": 1}}, n)
	b.pass(lease)
	require.Len(t, b.sweep(t), 1)
}

func reopenedByHolder(t *testing.T, b *bench) {
	p := policy
	p.LateProgress = true
	for _, id := range []string{"taken", "waiting"} {
		_, err := b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: p})
		require.NoError(t, err)
	}
	b.take(t, "w", 1)
	_, err := b.Finish(b.ctx, "taken", "w", ok(`1`))
	require.NoError(t, err)
	_, err = b.Finish(b.ctx, "waiting", "", store.End{Status: protocol.Cancelled})
	require.NoError(t, err)
	require.ErrorIs(t, b.Progress(b.ctx, "taken", "other", json.RawMessage(`2`)), protocol.ErrJobSettled)
	require.ErrorIs(t, b.Progress(b.ctx, "waiting", "w", json.RawMessage(`2`)), protocol.ErrJobSettled, "it was never taken")
	require.Equal(t, protocol.Completed, b.get(t, "taken").Status)
	require.Equal(t, protocol.Cancelled, b.get(t, "waiting").Status)
	require.NoError(t, b.Progress(b.ctx, "taken", "w", json.RawMessage(`2`)))
	require.Equal(t, protocol.InProgress, b.get(t, "taken").Status)
}

func reopenedCounts(t *testing.T, b *bench) {
	p := policy
	p.LateProgress = true
	for _, end := range []store.End{ok(`1`), {Status: protocol.Failed, Error: "boom"}} {
		id := string(end.Status)
		_, err := b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: p})
		require.NoError(t, err)
		b.take(t, "w", 1)
		for range 3 {
			require.NoError(t, b.Progress(b.ctx, id, "w", json.RawMessage(`0`)))
			_, err = b.Finish(b.ctx, id, "w", end)
			require.NoError(t, err)
		}
	}
	n, err := b.Counts(b.ctx)
	require.NoError(t, err)
	require.Equal(t, store.Counts{Completed: 1, Failed: 1, Busy: map[string]int{}}, n)
}

func sweepLimit(t *testing.T, b *bench) {
	b.add(t, "a", "b", "c")
	b.pass(policy.TTL)
	for _, want := range []int{2, 1, 0} {
		due, err := b.Sweep(b.ctx, 2)
		require.NoError(t, err)
		require.Len(t, due, want)
	}
}

func requeue(t *testing.T, b *bench) {
	b.add(t, "a", "b")
	_, err := b.Requeue(b.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFailed)
	b.take(t, "w", 1)
	require.NoError(t, b.AppendChunks(b.ctx, "a", "w", json.RawMessage(`1`)))
	_, err = b.Finish(b.ctx, "a", "w", store.End{Status: protocol.Failed, Output: json.RawMessage(`1`), Error: "boom"})
	require.NoError(t, err)
	job, err := b.Requeue(b.ctx, "a")
	require.NoError(t, err)
	require.Equal(t, protocol.InQueue, job.Status)
	require.Empty(t, job.Error)
	require.Nil(t, job.Output)
	require.True(t, job.Started.IsZero())
	_, got, err := b.DrainChunks(b.ctx, "a")
	require.NoError(t, err)
	require.Empty(t, got)
	require.Equal(t, []string{"b", "a"}, b.take(t, "w", 2))
	_, err = b.Finish(b.ctx, "a", "w", ok(`2`))
	require.NoError(t, err)
	job, err = b.Requeue(b.ctx, "a")
	require.ErrorIs(t, err, store.ErrNotFailed)
	require.Equal(t, protocol.Completed, job.Status)
}

func requeueTTL(t *testing.T, b *bench) {
	for _, timesOut := range []bool{true, false} {
		id, p := fmt.Sprint(timesOut), policy
		p.TTLTimesOut, p.TTL, p.Retention = timesOut, time.Minute, time.Hour
		created, err := b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: p})
		require.NoError(t, err)
		if b.pass(time.Minute - 1); timesOut {
			b.pass(1)
			b.sweep(t)
			require.Equal(t, store.TTLExceeded, b.get(t, id).Error)
		} else {
			_, err = b.Finish(b.ctx, id, "", store.End{Status: protocol.Failed, Error: "boom"})
			require.NoError(t, err)
		}
		job, err := b.Requeue(b.ctx, id)
		require.NoError(t, err)
		require.Equal(t, created.Created, job.Created)
		b.pass(time.Minute - 1)
		require.Empty(t, b.sweep(t))
		require.Equal(t, protocol.InQueue, b.get(t, id).Status)
		require.Equal(t, []string{id}, b.take(t, "w", 1))
		b.pass(1)
		require.Len(t, b.sweep(t), 1, "the ttl of the retried job is over")
	}
}

func purge(t *testing.T, b *bench) {
	b.add(t, "running", "a", "b")
	b.take(t, "w", 1)
	n, err := b.Purge(b.ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, protocol.InProgress, b.get(t, "running").Status)
	_, err = b.Get(b.ctx, "a")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	require.Empty(t, b.take(t, "w", 1))
}

func counts(t *testing.T, b *bench) {
	b.add(t, "a", "b", "c", "d", "e")
	b.take(t, "w", 2)
	b.take(t, "v", 1)
	_, err := b.Finish(b.ctx, "a", "w", ok(`1`))
	require.NoError(t, err)
	_, err = b.Finish(b.ctx, "c", "v", store.End{Status: protocol.Failed, Error: "boom"})
	require.NoError(t, err)
	n, err := b.Counts(b.ctx)
	require.NoError(t, err)
	require.Equal(t, store.Counts{InQueue: 2, InProgress: 1, Completed: 1, Failed: 1, Busy: map[string]int{"w": 1}}, n)
	b.pass(lease)
	b.sweep(t)
	n, err = b.Counts(b.ctx)
	require.NoError(t, err)
	require.Equal(t, store.Counts{InQueue: 3, Completed: 1, Failed: 1, Retried: 1, Busy: map[string]int{}}, n)
}

func listed(t *testing.T, b *bench) {
	b.add(t, "a", "b", "c", "d")
	b.take(t, "w", 1)
	_, err := b.Purge(b.ctx)
	require.NoError(t, err)
	b.add(t, "e", "f")
	jobs, err := b.List(b.ctx, 2)
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	require.Equal(t, "f", jobs[0].ID)
	require.Equal(t, "e", jobs[1].ID)
	jobs, err = b.List(b.ctx, 10)
	require.NoError(t, err)
	require.Len(t, jobs, 3)
	require.Equal(t, "a", jobs[2].ID)
}

func unique(t *testing.T, b *bench) {
	b.add(t, "a")
	_, err := b.Enqueue(b.ctx, store.Job{ID: "a", Policy: policy})
	require.ErrorIs(t, err, store.ErrExists)
}

func closes(t *testing.T, b *bench) {
	b.add(t, "a")
	b.take(t, "w", 1)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = b.Take(b.ctx, store.Take{Worker: "w", Max: 1, Lease: lease, Wait: time.Hour}) })
	wg.Go(func() { _, _ = b.Wait(b.ctx, "a", store.Ended, time.Hour) })
	require.NoError(t, b.Close())
	wg.Wait()
}

func unknown(t *testing.T, b *bench) {
	_, err := b.Get(b.ctx, "x")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	_, err = b.Finish(b.ctx, "x", "w", ok(`1`))
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	_, err = b.Requeue(b.ctx, "x")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	_, err = b.Wait(b.ctx, "x", store.Ended, time.Hour)
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
	_, _, err = b.DrainChunks(b.ctx, "x")
	require.ErrorIs(t, err, protocol.ErrUnknownJob)
}

// hammer lets workers that lose, forget and repeat things meet clients that cancel.
func hammer(t *testing.T, b *bench) {
	const jobs = 400
	var ends, gone atomic.Int32
	end := func(id, worker string) {
		switch _, err := b.Finish(b.ctx, id, worker, ok(`1`)); {
		case err == nil:
			ends.Add(1)
		case !errors.Is(err, protocol.ErrJobSettled) && !errors.Is(err, protocol.ErrNotHolder):
			gone.Add(1)
		}
	}
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			for i := range jobs / 4 {
				id := fmt.Sprintf("%d-%d", c, i)
				_, _ = b.Enqueue(b.ctx, store.Job{ID: id, Payload: payload(id), Policy: store.Policy{
					Execution: time.Hour, TTL: time.Hour, Retention: time.Hour, MaxRetries: 1000,
				}})
				if i%7 == 0 {
					end(id, "")
				}
			}
		})
	}
	for w := range 6 {
		wg.Go(func() {
			worker := fmt.Sprint(w)
			for n := 0; ends.Load() < jobs; n++ {
				got, _ := b.Take(b.ctx, store.Take{Worker: worker, Max: 1 + n%3, Lease: time.Second, Wait: time.Millisecond})
				for i, job := range got {
					switch (n + i) % 5 {
					case 0:
						_ = b.Untake(b.ctx, worker, []string{job.ID})
					case 1: // forget it
						b.pass(time.Second)
						_, _ = b.Sweep(b.ctx, 10)
					case 2: // repeat it
						end(job.ID, worker)
						end(job.ID, worker)
					default:
						end(job.ID, worker)
					}
				}
				if len(got) == 0 {
					b.pass(time.Second)
					_, _ = b.Sweep(b.ctx, 10)
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, jobs, ends.Load(), "a job has ended twice")
	require.Zero(t, gone.Load())
	n, err := b.Counts(b.ctx)
	require.NoError(t, err)
	require.Equal(t, jobs, n.Completed)
	require.Zero(t, n.InQueue+n.InProgress)
}
