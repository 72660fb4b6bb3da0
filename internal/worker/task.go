package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"runpodctl-worker/internal/protocol"
)

// task is one job on its way from the take to the accepted result.
type task struct {
	w      *Worker
	job    protocol.Job
	ctx    context.Context // of the posts: ends when the platform stops the job, or with the worker's work
	cancel context.CancelCauseFunc
	// handling is the handler's. It ends with ctx, or when the time of the job is up.
	handling  context.Context
	interrupt context.CancelCauseFunc
	out       outbound

	late    bool // its result is of a process before this one
	taken   time.Time
	decided time.Time // when its end was known; for whoever has claimed it, as is failed
	failed  bool      // what was accepted is an error, whatever the handler said

	offeredAgain atomic.Bool
	ending       atomic.Bool // somebody sees to the end of the job, whether its handler is back or not

	// Guarded by the ledger.
	life          *life // the program that has, or had, the job
	back, failing bool
	reported      bool  // clients have seen something of it
	overdue       bool  // its handler should be back
	owed          int64 // bytes of its result, once there is one
	turn          bool  // it has one of the places of late results
}

func (w *Worker) newTask(job protocol.Job) *task {
	t := &task{w: w, job: job, taken: time.Now()}
	t.ctx, t.cancel = context.WithCancelCause(w.work)
	t.handling, t.interrupt = context.WithCancelCause(t.ctx)
	t.out.init(t)
	return t
}

// run is the life of a job, in a goroutine of its own.
func (t *task) run() {
	outcome, err := t.handle()
	defer outcome.Drop()
	t.refreshAfter(outcome) // before the slot is free, so that no take slips in
	t.w.resize()
	mine := t.claimEnd()
	if idle := t.w.ledger.back(t); idle {
		// The next take goes out before this result: nothing runs until it is answered, and this goroutine would keep
		// its processor until it waits for the network. While other jobs run, the take had better wait for more room.
		runtime.Gosched()
	}
	switch {
	case !mine: // it has ended without its handler
	case errors.Is(err, errNoProgram):
		t.decided = time.Now()
		t.release()
	case err != nil && t.handling.Err() != nil: // as it was told to
		t.end(protocol.Outcome{Error: errReleased.Error()})
	case err != nil:
		t.end(protocol.Outcome{Error: cmp.Or(err.Error(), "the handler failed")})
	default:
		t.end(outcome)
	}
}

// handle has the handler do the job: twice, if a crash of which others are suspected too is in the way.
func (t *task) handle() (protocol.Outcome, error) {
	if t.w.crashers.barred(t.job.ID, t.w.cfg.MaxCrashes) {
		return protocol.Outcome{Error: crasherText}, nil
	}
	if t.w.cfg.Journal.Suspected(t.job.ID) {
		t.log(slog.LevelWarn, "A worker died while it ran this job, which is run by itself now.")
		t.w.ledger.isolate(t)
	}
	for {
		life := t.w.ledger.enter(t)
		if life == nil {
			return protocol.Outcome{}, cmp.Or(context.Cause(t.handling), errNoProgram)
		}
		t.w.cfg.Journal.Taken(t.job.ID)
		t.log(slog.LevelInfo, "Started.")
		outcome, err := t.attempt(life)
		how := cameBack(outcome, err)
		if how == failed {
			t.reportSick(outcome)
		}
		if !t.w.ledger.leave(t, how, t.out.used()) {
			return outcome, t.w.ledger.explain(life, err)
		}
		outcome.Drop()
		if how == unbegun {
			t.log(slog.LevelWarn, "The program ended before it had this job; the next one gets it.")
			continue
		}
		t.log(slog.LevelWarn, "The program ended, and not for this job alone, which is run again by itself.")
	}
}

// attempt calls the handler. One of this process that panics costs its job, not the worker.
func (t *task) attempt(l *life) (outcome protocol.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log(slog.LevelError, "The handler panicked.", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	defer t.limitTime()()
	t.w.cfg.Observer.started(t.job)
	defer t.w.cfg.Observer.returned(t.job, time.Now())
	return l.handler.Handle(t.handling, t.job, &t.out)
}

// claimEnd gives the end of the job to the first who asks.
func (t *task) claimEnd() bool { return t.ending.CompareAndSwap(false, true) }

// end reports the outcome and forgets the job. It is for whoever has claimed the end.
func (t *task) end(outcome protocol.Outcome) {
	defer t.cancel(nil)
	t.decided = time.Now()
	streamed, lost := t.out.finish()
	outcome.Stream = outcome.Stream || streamed
	if lost != "" {
		outcome = protocol.Outcome{Error: lost, Stream: true}
	}
	decided := again
	if t.ctx.Err() == nil {
		if outcome.Error != "" {
			t.log(slog.LevelWarn, jobFailed, slog.String("error", brief(outcome.Error)))
		}
		if !t.late { // such a one has outlived a process already
			t.keep(outcome)
		}
		decided = t.deliver(outcome)
	}
	switch cause := context.Cause(t.ctx); {
	case decided == settled:
		t.settle()
		t.accepted(outcome)
	case errors.Is(cause, errStopped):
		t.log(slog.LevelInfo, "Stopped.")
		t.settle()
		t.ended(Stopped)
	case decided.final():
		t.settle()
		t.ended(Undelivered)
	case cause == nil: // given up; the next process tries again
		t.w.ledger.settle(t)
		t.ended(Undelivered)
	default:
		t.letGo(outcome)
	}
}

// keep sees to it that the result outlives this process, before it is posted.
func (t *task) keep(outcome protocol.Outcome) {
	t.w.ledger.owe(t, outcome.Size())
	t.w.cfg.Journal.Result(t.job.ID, outcome)
}

// log writes a line about this job.
func (t *task) log(level slog.Level, msg string, attrs ...slog.Attr) {
	log := t.w.log
	if !log.Enabled(context.Background(), level) {
		return
	}
	log.LogAttrs(context.Background(), level, msg, append(t.attrs(), attrs...)...)
}

func (t *task) attrs() []slog.Attr {
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("job", t.job.ID))
	if t.job.BatchID != "" {
		attrs = append(attrs, slog.String("batch", t.job.BatchID))
	}
	return attrs
}
