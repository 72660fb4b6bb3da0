package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// ledger is the state of the worker: the jobs that it answers for, from the take until the platform
// has accepted the result, and the room for more.
type ledger struct {
	mu       sync.Mutex
	changed  sync.Cond
	tasks    map[string]*task
	running  int   // jobs whose handler is not back yet, whether they are settled or not
	unsent   int   // tasks whose handler is back
	failing  int   // those of them whose last post failed
	late     int   // tasks whose result is of a former process; they have never had a slot
	turns    int   // those of them that are read back and posted now
	owed     int64 // bytes of the results of all tasks
	slots    int
	fetching bool
	fetched  bool  // or has been
	last     *task // the one whose post tells the platform to recycle the worker
	stage    stage
	released []string // jobs that the worker has let go of
	failed   []string // jobs that it has reported FAILED because it ended
}

func newLedger(slots int) *ledger {
	l := &ledger{tasks: map[string]*task{}, slots: slots}
	l.changed.L = &l.mu
	return l
}

// update changes the state and wakes those who wait for a change.
func (l *ledger) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	l.changed.Broadcast()
}

// wait returns true once the condition holds, false when ctx ends before. The lock is held.
func (l *ledger) wait(ctx context.Context, holds func() bool) bool {
	if holds() {
		return true
	}
	stop := context.AfterFunc(ctx, func() { l.update(func() {}) })
	defer stop()
	for !holds() {
		if ctx.Err() != nil {
			return false
		}
		l.changed.Wait()
	}
	return true
}

// add enters a job that was taken. It returns the task in whose way it is if the id is held already.
func (l *ledger) add(t *task) (held *task) {
	l.update(func() {
		if held = l.tasks[t.job.ID]; held == nil {
			l.tasks[t.job.ID] = t
			l.running++
		}
	})
	return held
}

// back notes that the handler has returned, and tells whether no other runs.
func (l *ledger) back(t *task) (idle bool) {
	l.update(func() {
		t.back = true
		l.running--
		if l.tasks[t.job.ID] == t {
			l.unsent++
			l.failing += count(t.failing)
		}
		idle = l.running == 0
	})
	return idle
}

// settle forgets a job. If its handler is not back, that keeps its slot.
func (l *ledger) settle(t *task) { l.update(func() { l.forget(t) }) }

// forget is settle with the lock held.
func (l *ledger) forget(t *task) {
	delete(l.tasks, t.job.ID)
	l.owed -= t.owed
	l.late -= count(t.late)
	l.passTurn(t)
	if t.back {
		l.unsent--
		l.failing -= count(t.failing)
	}
}

// room is how many jobs can be taken. The lock is held.
//
// A slot is free when its handler is back, so that the next job runs while the result before it is on its
// way. But results must not pile up: only as many as there are slots may be on their way; one more
// keeps the slot that it came from, and so does each whose delivery has failed and is tried again. So there are
// never more than two for each slot, the second only where it was taken before the first failed. Results of a former process
// have no slot; only when they are very many, or all results together are very large, they are waited for.
func (l *ledger) room() int {
	if !l.stage.open() || l.overfull() {
		return 0
	}
	return l.slots - l.running - max(l.failing, l.unsent-l.slots)
}

// awaitRoom waits for room, and tells how much there is and whether the worker holds any job.
func (l *ledger) awaitRoom(ctx context.Context) (room int, busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.wait(ctx, func() bool { return l.room() > 0 }) {
		return 0, true
	}
	return l.room(), len(l.tasks) > 0
}

// awaitEmpty waits until every job is settled.
func (l *ledger) awaitEmpty(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return len(l.tasks) == 0 })
}

// find returns the task of a job that is held.
func (l *ledger) find(id string) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tasks[id]
}

// ids are the jobs that are held, sorted.
func (l *ledger) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.tasks))
}

// resize sets the number of slots and returns the old one.
func (l *ledger) resize(slots int) (old int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old = l.slots
	if slots != old {
		l.slots = slots
		l.changed.Broadcast()
	}
	return old
}

func (l *ledger) setFetching(on bool) { l.update(func() { l.fetching, l.fetched = on, true }) }

// setFailing notes whether the last post for a job failed.
func (l *ledger) setFailing(t *task, failing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.failing == failing {
		return
	}
	if t.back {
		l.failing += count(failing) - count(t.failing)
	}
	t.failing = failing
	l.passTurn(t)
	l.changed.Broadcast()
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
