package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"runpodctl-worker/internal/protocol"
)

// farewellTime is what the last posts of a worker that has to end may take, all together.
const farewellTime = time.Second

// limitTime starts the clock of one attempt at the job. The attempt is over when release is called.
func (t *task) limitTime() (release func()) {
	limit := t.w.cfg.JobTimeout
	if limit <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(t.handling)
	t.w.task(func() {
		if t.w.clock.sleep(ctx, limit) {
			t.timeOut(limit)
		}
	})
	return cancel
}

// timeOut fails the job at once, whatever its handler does.
func (t *task) timeOut(limit time.Duration) {
	if !t.claimEnd() {
		return
	}
	err := fmt.Errorf("job timeout: the handler was not done after %s", limit)
	t.interrupt(err)
	outcome := protocol.Outcome{Error: err.Error()}
	t.refreshAfter(outcome)
	t.w.task(func() { t.end(outcome) })
	t.w.awaitReturn(t.w.background, t)
}

// stop ends the job for the platform, which wants no result of it.
func (t *task) stop() {
	t.cancel(errStopped)
	if t.claimEnd() {
		t.end(protocol.Outcome{})
	}
	t.w.awaitReturn(t.w.background, t)
}

// letGo ends the work: the jobs that are left are released, or failed where the worker was told so.
func (w *Worker) letGo() {
	w.endWork(errReleased)
	for _, t := range w.ledger.held() {
		if t.claimEnd() {
			w.task(func() { t.end(protocol.Outcome{Error: errReleased.Error()}) })
		}
	}
}

// letGo ends a job because the worker's work has ended. A result that is there gets its last chance with the rest.
func (t *task) letGo(outcome protocol.Outcome) {
	if !t.w.cfg.FailOnKill {
		t.release()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), farewellTime)
	defer cancel()
	outcome, body := t.fit(ctx, outcome, false)
	switch err := t.w.platform.Done(ctx, t.job.ID, body, outcome.Stream); {
	case err != nil:
		t.log(slog.LevelError, "The last word about the job could not be posted.", slog.Any("error", err))
		t.release()
	case outcome.Error != "":
		t.log(slog.LevelWarn, "The job has failed with the end of the worker.", slog.String("error", brief(outcome.Error)))
		t.w.cfg.Journal.Settled(t.job.ID)
		t.w.ledger.fail(t)
		t.ended(Failed)
	default:
		t.log(slog.LevelInfo, "Finished.")
		t.settle()
		t.ended(Completed)
	}
}

// release gives the job back: nothing is posted, and the platform hands it to another worker.
func (t *task) release() {
	t.log(slog.LevelWarn, "The job is released: the worker ends before its result is delivered.")
	t.cancel(errReleased)
	t.w.cfg.Journal.Released(t.job.ID)
	t.w.ledger.release(t)
	t.ended(Released)
}

// release forgets a job that the platform has to give to another worker.
func (l *ledger) release(t *task) {
	l.update(func() {
		l.forget(t)
		l.released = append(l.released, t.job.ID)
	})
}

// fail forgets a job that has failed because the worker ended.
func (l *ledger) fail(t *task) {
	l.update(func() {
		l.forget(t)
		l.failed = append(l.failed, t.job.ID)
	})
}

// held are the jobs that are not settled.
func (l *ledger) held() []*task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.tasks))
}

// unsettled is nil if every job has got the end that its handler, or the platform, has given it.
func (l *ledger) unsettled() *UnsettledError {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &UnsettledError{Jobs: slices.Clone(l.released), Failed: l.failed}
	for id, t := range l.tasks {
		if !errors.Is(context.Cause(t.ctx), errStopped) {
			e.Jobs = append(e.Jobs, id)
		}
	}
	if len(e.Jobs)+len(e.Failed) == 0 {
		return nil
	}
	slices.Sort(e.Jobs)
	slices.Sort(e.Failed)
	return e
}
