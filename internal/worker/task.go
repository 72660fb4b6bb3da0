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

	"runpodctl-worker/internal/protocol"
)

// task is one job on its way from the take to the accepted result.
type task struct {
	w      *Worker
	job    protocol.Job
	ctx    context.Context // ends when the platform stops the job, or with the worker's work
	cancel context.CancelCauseFunc
	out    outbound

	offeredAgain atomic.Bool

	back, failing bool // guarded by the ledger
}

func (w *Worker) newTask(job protocol.Job) *task {
	t := &task{w: w, job: job}
	t.ctx, t.cancel = context.WithCancelCause(w.work)
	t.out.init(t)
	return t
}

// run is the life of a job, in a goroutine of its own.
func (t *task) run() {
	defer t.cancel(nil)
	t.log(slog.LevelInfo, "Started.")
	outcome, err := t.handle()
	if err != nil && t.ctx.Err() == nil {
		outcome = protocol.Outcome{Error: cmp.Or(err.Error(), "the handler failed")}
	}
	if outcome.Refresh || t.w.cfg.Refresh {
		t.w.endFetch(errRefresh) // before the slot is free, so that no take slips in
	}
	t.w.resize()
	if idle := t.w.ledger.back(t); idle {
		// The next take goes out before this result: nothing runs until it is answered, and this goroutine would keep
		// its processor until it waits for the network. While other jobs run, the take had better wait for more room.
		runtime.Gosched()
	}

	streamed, lost := t.out.finish()
	outcome.Stream = outcome.Stream || streamed
	if lost != "" {
		outcome = protocol.Outcome{Error: lost, Stream: true}
	}
	if outcome.Error != "" {
		t.log(slog.LevelWarn, jobFailed, slog.String("error", brief(outcome.Error)))
	}
	err = context.Cause(t.ctx)
	if err == nil {
		err = t.deliver(outcome)
	}
	switch cause := context.Cause(t.ctx); {
	case err == nil, cause == nil: // delivered, or given up
	case errors.Is(cause, errStopped):
		t.log(slog.LevelInfo, "Stopped.")
	default:
		t.log(slog.LevelWarn, "The job is released: the worker ends before its result is delivered.")
		return // it stays in the ledger, as unsettled
	}
	t.w.ledger.settle(t)
}

// handle calls the handler. One of this process that panics costs its job, not the worker.
func (t *task) handle() (outcome protocol.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log(slog.LevelError, "The handler panicked.", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	return t.w.handler.Handle(t.ctx, t.job, &t.out)
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
