package worker

import (
	"context"
	"errors"

	"runpodctl-worker/internal/protocol"
)

// refreshAfter ends the taking of jobs where this one asks for a fresh worker.
func (t *task) refreshAfter(outcome protocol.Outcome) {
	if outcome.Refresh || t.w.cfg.Refresh {
		t.w.endFetch(errRefresh)
	}
}

func (w *Worker) refreshing() bool { return errors.Is(context.Cause(w.fetching), errRefresh) }

// awaitLast tells whether t, whose end is decided, makes the last post of this worker. For the one that
// does it returns only when every other job is settled.
func (l *ledger) awaitLast(ctx context.Context, t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait(ctx, func() bool { return !l.fetching || l.undecided() })
	if l.undecided() || l.last != nil {
		return false
	}
	l.last = t
	return l.wait(ctx, func() bool { return len(l.tasks) == 1 })
}

// undecided tells whether there are jobs whose result is still to come. The lock is held.
func (l *ledger) undecided() bool {
	for _, t := range l.tasks {
		if !t.ending.Load() {
			return true
		}
	}
	return false
}
