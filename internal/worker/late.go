package worker

import (
	"context"
	"log/slog"
	"time"

	"runpodctl-worker/internal/protocol"
)

const (
	// So many results of former processes may wait beside new work, and so many bytes of results, old and new. No job is
	// taken while there are more.
	maxLate         = 256
	maxWaitingBytes = 256 << 20
	// maxLatePosts bounds the results that are read back and posted at a time. One whose post has failed makes way: it is tried
	// again beside the others.
	maxLatePosts = 8
)

// settleLate posts the results that a process before this one still owed, the oldest first, beside everything else that the
// worker does. From now on they are jobs that this worker holds.
func (w *Worker) settleLate() {
	var late []*task
	for job, size := range w.cfg.Journal.Owed() {
		t := w.newTask(protocol.Job{ID: job})
		t.late = true
		t.claimEnd()
		w.ledger.addLate(t, size)
		late = append(late, t)
	}
	if len(late) == 0 {
		return
	}
	w.log.Info("Results that the process before this one could not deliver are posted now.", slog.Int("results", len(late)))
	w.task(func() {
		for _, t := range late {
			if w.ledger.awaitTurn(w.work, t) {
				w.task(t.endLate)
			} else {
				t.decided = time.Now()
				t.release()
			}
		}
	})
}

func (t *task) endLate() {
	outcome, err := t.w.cfg.Journal.Recall(t.job.ID)
	if err != nil {
		t.log(slog.LevelError, "A result of the process before this one is lost.", slog.Any("error", err))
		t.cancel(nil)
		t.decided = time.Now()
		t.settle()
		t.ended(Undelivered)
		return
	}
	defer outcome.Drop()
	t.end(outcome)
}

// settle forgets a job of which the platform wants nothing any more.
func (t *task) settle() {
	t.w.cfg.Journal.Settled(t.job.ID)
	t.w.ledger.settle(t)
}

// addLate enters a job whose result is there already.
func (l *ledger) addLate(t *task, size int64) {
	l.update(func() {
		l.tasks[t.job.ID] = t
		l.late++
		t.owed = size
		l.owed += size
	})
}

// owe notes the size of a result that waits to be delivered.
func (l *ledger) owe(t *task, size int64) {
	l.update(func() {
		l.owed += size - t.owed
		t.owed = size
	})
}

// overfull tells whether too much waits to be delivered. The lock is held.
func (l *ledger) overfull() bool { return l.late > maxLate || l.owed > maxWaitingBytes }

// awaitTurn waits until the result of a job may be posted beside those of former processes that are.
func (l *ledger) awaitTurn(ctx context.Context, t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wait(ctx, func() bool { return l.turns < maxLatePosts }) {
		return false
	}
	l.turns++
	t.turn = true
	return true
}

// passTurn lets the next result be posted. The lock is held.
func (l *ledger) passTurn(t *task) {
	l.turns -= count(t.turn)
	t.turn = false
}
