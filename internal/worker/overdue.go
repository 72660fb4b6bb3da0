package worker

import (
	"context"
	"log/slog"
	"time"
)

// minOverdue is how long a handler may go on with a job that has ended without it. To load the model again
// costs more than to wait as long as that takes.
const minOverdue = 10 * time.Second

// awaitReturn waits for the handler of a job that has ended without it. One that does not come back costs the program its
// life, but only where no other job is in it that anybody waits for.
func (w *Worker) awaitReturn(ctx context.Context, t *task) {
	life := w.ledger.lifeOf(t)
	if life == nil {
		return // it has never been in a program
	}
	patience := max(minOverdue, life.loading)
	limited, cancel := w.clock.timeout(ctx, patience, context.DeadlineExceeded)
	defer cancel()
	if w.ledger.awaitLeft(limited, t) || ctx.Err() != nil {
		return
	}
	t.log(slog.LevelWarn, "The handler goes on with a job that has ended. The program is killed for it as soon as no other job needs it.",
		slog.Duration("for", patience))
	if w.ledger.awaitCondemned(ctx, t) {
		t.log(slog.LevelWarn, "The program is killed: the handler did not let go of the job.")
	}
}

// lifeOf is the program that a job was in last, nil if there is none.
func (l *ledger) lifeOf(t *task) *life {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.life
}

// awaitLeft waits until a job is in no program.
func (l *ledger) awaitLeft(ctx context.Context, t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return !t.life.inside[t] })
}

// awaitCondemned waits until an overdue job has left its program, or all that are in there are overdue; then it gives
// the program up and returns true. No other job goes in meanwhile, or the wait might never end.
func (l *ledger) awaitCondemned(ctx context.Context, t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	life := t.life
	if !life.inside[t] {
		return false
	}
	t.overdue = true
	life.overdue++
	l.changed.Broadcast()
	l.wait(ctx, func() bool { return !life.inside[t] || life.condemned || life.overdue == len(life.inside) })
	if ctx.Err() != nil || !life.inside[t] || life.condemned || life.over() {
		return false
	}
	life.condemned = true
	close(life.doomed)
	return true
}
