package worker

import (
	"context"
	"errors"
	"slices"

	"runpodctl-worker/internal/protocol"
)

// stage is the ledger's view of the program: which one runs jobs, and who may go in. It is guarded by the ledger.
type stage struct {
	life    *life   // nil while there is no program
	closed  bool    // there will be none any more
	rerun   []*task // these go in before all others, one by one
	waiting int     // jobs that wait to go in
	crashes int     // of the program, in a row
}

// open tells whether jobs can be taken.
func (s *stage) open() bool {
	return s.life != nil && s.life.overdue == 0 && !s.life.condemned && len(s.rerun) == 0
}

// admits tells whether a job may go in. Nobody follows into a program that has died, for he would be among its victims,
// or that is to be killed when it is empty enough.
func (s *stage) admits(t *task) bool {
	if s.life == nil || s.life.overdue > 0 || s.life.condemned || s.life.over() {
		return false
	}
	return len(s.rerun) == 0 || s.rerun[0] == t && len(s.life.inside) == 0
}

func (s *stage) strike(t *task) {
	s.rerun = slices.DeleteFunc(s.rerun, func(u *task) bool { return u == t })
}

// open makes a program the one that runs jobs.
func (l *ledger) open(life *life) { l.update(func() { l.stage.life = life }) }

// close sends those away who wait for a program.
func (l *ledger) close() { l.update(func() { l.stage.closed = true }) }

// present is the program that runs jobs, nil if there is none.
func (l *ledger) present() *life {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stage.life
}

// isolate has a job run alone, before those that wait to go in.
func (l *ledger) isolate(t *task) { l.update(func() { l.stage.rerun = append(l.stage.rerun, t) }) }

// enter waits for a program that the job can go into. It returns nil when the job is not to run any more, or
// there will be none.
func (l *ledger) enter(t *task) *life {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.stage
	if !s.admits(t) {
		s.waiting++
		l.changed.Broadcast()
		l.wait(t.handling, func() bool { return s.closed || s.admits(t) })
		s.waiting--
	}
	if t.handling.Err() != nil || !s.admits(t) {
		s.strike(t)
		l.changed.Broadcast()
		return nil
	}
	t.life = s.life
	t.life.inside[t] = true
	return t.life
}

// coming is how a job comes back from its program.
type coming int

const (
	well    coming = iota // with a result
	failed                // with a failure of its own
	lost                  // without an outcome
	unbegun               // without having been in it
)

func cameBack(outcome protocol.Outcome, err error) coming {
	switch {
	case errors.Is(err, protocol.ErrNotBegun):
		return unbegun
	case err != nil:
		return lost
	case outcome.Error != "":
		return failed
	default:
		return well
	}
}

// leave notes that the handler has returned. A job that was lost with its program waits here for its fate; true
// means that it is run again, as is one that the program never had.
func (l *ledger) leave(t *task, how coming, reported bool) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, life := &l.stage, t.life
	delete(life.inside, t)
	life.overdue -= count(t.overdue)
	if how == unbegun {
		again = t.handling.Err() == nil && (life.over() || life.condemned)
		if !again { // else it keeps its place: who had to run alone still has to
			s.strike(t)
		}
		l.changed.Broadcast()
		return again
	}
	s.strike(t)
	if how == well && life.sick == "" {
		s.crashes = 0
	}
	if !life.lostBy(t, how) {
		return false
	}
	life.fallen++
	l.changed.Broadcast()
	if life.judged || t.handling.Err() != nil {
		return false
	}
	t.reported = reported
	life.lost = append(life.lost, t)
	if l.wait(t.handling, func() bool { return life.judged }) && t.handling.Err() == nil {
		return slices.Contains(s.rerun, t)
	}
	life.lost = slices.DeleteFunc(life.lost, func(u *task) bool { return u == t })
	s.strike(t)
	l.changed.Broadcast()
	return false
}

// lostBy tells whether a job has come back from a program that has ended, without a result of its own. When the GPU
// has failed, what others say of it, or of their sudden end, is not their own. The ledger is locked.
func (l *life) lostBy(t *task, how coming) bool {
	if l.sick != "" {
		return how != well && l.foundBy != t
	}
	return how == lost && l.over()
}

// retire closes a program that has ended, or has to, and tells which of the two it is; and whether it is for its GPU.
func (l *ledger) retire(life *life) (killed bool, sick string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage.life = nil
	return life.condemned, life.sick
}

// judge decides about the jobs that were lost with a program. One that ran alone is the culprit, unless the program was
// ended for another one. Of several nobody knows which it was: those that have reported nothing yet are run again, each
// alone, and the others fail. It waits for the jobs to come back until ctx ends.
func (l *ledger) judge(ctx context.Context, life *life) (culprit *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wait(ctx, func() bool { return len(life.inside) == 0 })
	life.judged = true
	l.changed.Broadcast()
	if life.sick != "" || life.fallen+len(life.inside) > 1 {
		for _, t := range life.lost {
			if !t.reported {
				l.stage.rerun = append(l.stage.rerun, t)
			}
		}
	} else if len(life.lost) == 1 {
		culprit = life.lost[0]
	}
	return culprit
}

// crashed counts the end of a program, and returns how many there were in a row.
func (l *ledger) crashed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stage.crashes++
	return l.stage.crashes
}

// awaitNeed waits until a program is needed: for jobs to come, or for those that wait to go in.
func (l *ledger) awaitNeed(ctx, fetching context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wait(ctx, func() bool { return fetching.Err() == nil || l.stage.waiting > 0 })
}
