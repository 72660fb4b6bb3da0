package journal

import (
	"cmp"
	"maps"
	"slices"
)

// maxDoubts bounds the jobs whose crashes are remembered; the oldest are forgotten.
const maxDoubts = 1024

// state is what the records of a segment add up to.
type state struct {
	jobs   map[string]*entry // taken and not settled
	doubts map[string]*doubt
	held   int64  // bytes of their results
	clock  uint64 // counts what comes, so that the order is known
}

type entry struct {
	since  uint64
	result *result // nil: the job runs
}

// doubt is what speaks against a job.
type doubt struct {
	since     uint64
	crashes   uint64 // of the program, when the job had it to itself
	suspected bool   // of the end of a worker, which it had to itself
	beside    bool   // it ran beside others when a worker ended
}

func newState() *state {
	return &state{jobs: map[string]*entry{}, doubts: map[string]*doubt{}}
}

// apply makes a record part of the state. It returns the number of a file that is not needed any more, or 0.
func (s *state) apply(r record) (obsolete uint64) {
	s.clock++
	switch r.kind {
	case kindTaken:
		obsolete = s.forget(r.job)
		s.jobs[r.job] = &entry{since: s.clock}
	case kindInline, kindFile:
		obsolete = s.forget(r.job)
		s.jobs[r.job] = &entry{since: s.clock, result: &r.result}
		s.held += r.result.size
	case kindSettled:
		obsolete = s.forget(r.job)
	case kindCrashed:
		if r.count == 0 {
			delete(s.doubts, r.job)
		} else {
			s.doubt(r.job).crashes = r.count
		}
	case kindSuspected:
		s.doubt(r.job).suspected = true
	case kindBeside:
		s.doubt(r.job).beside = true
	}
	return obsolete
}

func (s *state) forget(job string) (obsolete uint64) {
	if e := s.jobs[job]; e != nil && e.result != nil {
		s.held -= e.result.size
		obsolete = e.result.file
	}
	delete(s.jobs, job)
	return obsolete
}

func (s *state) doubt(job string) *doubt {
	d := s.doubts[job]
	if d == nil {
		if len(s.doubts) >= maxDoubts {
			delete(s.doubts, s.orderedDoubts()[0])
		}
		d = &doubt{}
		s.doubts[job] = d
	}
	d.since = s.clock
	return d
}

// bury decides about the jobs that ran when the process before this one ended. They are forgotten: the platform gives them to
// somebody else, and their number is returned. One that had the worker to itself may have been its end; but anybody may have killed it, so the first time
// only a suspicion is left. Of several nobody knows which one it was: each has to show it alone.
func (s *state) bury() (released int) {
	running := s.forgetRunning()
	if len(running) == 1 {
		s.blame(running[0])
		return 1
	}
	for _, job := range running {
		s.clock++
		s.doubt(job).beside = true
	}
	return len(running)
}

func (s *state) forgetRunning() (running []string) {
	for _, job := range s.ordered() {
		if s.jobs[job].result == nil {
			running = append(running, job)
			s.forget(job)
		}
	}
	return running
}

func (s *state) blame(job string) {
	s.clock++
	if d := s.doubt(job); d.suspected {
		d.crashes++
	} else {
		d.suspected = true
	}
}

// ordered are the jobs, the oldest first.
func (s *state) ordered() []string {
	return slices.SortedFunc(maps.Keys(s.jobs), func(a, b string) int { return cmp.Compare(s.jobs[a].since, s.jobs[b].since) })
}

// orderedDoubts are the jobs in doubt, the oldest first.
func (s *state) orderedDoubts() []string {
	return slices.SortedFunc(maps.Keys(s.doubts), func(a, b string) int { return cmp.Compare(s.doubts[a].since, s.doubts[b].since) })
}
