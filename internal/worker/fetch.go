package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runpodctl-worker/internal/protocol"
)

const (
	// A take that was held for realHold is a long poll that found nothing, and is made again at once.
	realHold = time.Second
	// After a take that was refused or came back empty at once, the next waits between these. The longest,
	// with its jitter, is how late a job is taken after the platform has recovered.
	firstTakeDelay   = 500 * time.Millisecond
	longestTakeDelay = 2 * time.Second
)

// fetch takes jobs for as long as ctx lasts. Only one take is open at any time, and nothing but room paces
// them. open is the context of the takes: it outlives ctx by the linger.
func (w *Worker) fetch(ctx, open context.Context) {
	var p patience
	pace := delays(firstTakeDelay, longestTakeDelay, 1.5)
	for {
		n, busy := w.awaitRoom(ctx)
		if ctx.Err() != nil {
			return
		}
		began, thawed := time.Now(), w.clock.thawed()
		jobs, err := w.platform.Take(open, n, busy)
		w.cfg.Observer.took(len(jobs), time.Since(began), err)
		started := w.start(jobs)
		if ctx.Err() != nil {
			return
		}
		fine := p.judge(take, 0, err) == settled
		if !fine && !closed(thawed) {
			w.complain("Failed to get job.", err)
		}
		if started > 0 || fine && time.Since(began) >= realHold {
			pace.Reset()
			continue
		}
		if !pause(ctx, thawed, pace, max(pace.NextBackOff(), asked(err))) {
			return
		}
	}
}

// start runs the jobs of a take and returns how many were new. An id that this worker holds is not run a second
// time; one that it has settled is: the platform knows best why it hands it out again. But one whose result it did not
// want again and again has to wait, or the two would never come to an end.
func (w *Worker) start(jobs []protocol.Job) (started int) {
	for _, job := range jobs {
		t := w.newTask(job)
		if held := w.ledger.add(t); held != nil {
			t.cancel(nil)
			if held.offeredAgain.CompareAndSwap(false, true) {
				held.log(slog.LevelWarn, "The platform handed out a job that this worker already holds; it is run once.")
			}
			continue
		}
		if w.refused.bar(job.ID) { // asked only now: a job that is about to be refused is still held
			w.drop(t)
			continue
		}
		started++
		w.launch(t)
	}
	return started
}

// drop leaves a job alone whose results were not wanted.
func (w *Worker) drop(t *task) {
	t.cancel(nil)
	w.ledger.back(t)
	w.ledger.settle(t)
	w.complain("A job is handed out again whose results were not wanted; it is left alone for a while.", errNoWelcome, t.attrs()...)
}

// linger is a context that ends a while after ctx, or with work.
func linger(ctx, work context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	open, cancel := context.WithCancel(work)
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errExited) { // nobody could run what the open take brings
			cancel()
			return
		}
		time.AfterFunc(d, cancel)
	})
	return open, func() { stop(); cancel() }
}
