package worker

import (
	"slices"
	"strings"
	"time"
)

// Phase is what a worker is doing.
type Phase string

// The phases of a worker.
const (
	Loading    Phase = "loading"    // its handler is not ready yet
	Ready      Phase = "ready"      // it takes jobs
	Restarting Phase = "restarting" // the program has died and is not ready again
	Draining   Phase = "draining"   // it takes no more jobs
)

// JobState is where a job is that the worker holds.
type JobState string

// The states of a job.
const (
	Waiting    JobState = "waiting"    // for a program that can take it
	Running    JobState = "running"    // the handler has it
	Delivering JobState = "delivering" // the handler is back, the platform has no result yet
)

// Status is a worker at one moment.
type Status struct {
	Phase Phase
	Slots int
	Jobs  []HeldJob // the oldest first
}

// HeldJob is a job that the worker answers for.
type HeldJob struct {
	ID, BatchID string
	State       JobState
	Taken       time.Time
}

// Status may be asked at any time, before Run too.
func (w *Worker) Status() Status {
	l := w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	status := Status{Phase: w.phase(), Slots: l.slots, Jobs: make([]HeldJob, 0, len(l.tasks))}
	for _, t := range l.tasks {
		status.Jobs = append(status.Jobs, HeldJob{ID: t.job.ID, BatchID: t.job.BatchID, State: t.state(), Taken: t.taken})
	}
	slices.SortFunc(status.Jobs, func(a, b HeldJob) int {
		if c := a.Taken.Compare(b.Taken); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return status
}

// phase is for whoever holds the ledger's lock.
func (w *Worker) phase() Phase {
	switch l := w.ledger; {
	case !l.fetched:
		return Loading
	case !l.fetching || w.fetching.Err() != nil:
		return Draining
	case l.stage.life == nil:
		return Restarting
	}
	return Ready
}

// state is for whoever holds the ledger's lock.
func (t *task) state() JobState {
	switch {
	case t.back, t.late:
		return Delivering
	case t.life != nil && t.life.inside[t]:
		return Running
	}
	return Waiting
}
