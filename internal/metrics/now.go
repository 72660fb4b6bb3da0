package metrics

import (
	"runtime"
	"time"
)

// State is what a worker is doing at one moment.
type State struct {
	Phase string // checking, loading, ready, restarting or draining
	Slots int    // jobs at a time
	Jobs  []Job
}

// The phase in which a worker takes jobs.
const ready = "ready"

// Job is one that the worker holds.
type Job struct {
	ID, BatchID string
	State       string // waiting, running or delivering
	Taken       time.Time
}

var jobStates = []string{"waiting", "running", "delivering"}

func (s State) count(state string) (n int) {
	for _, job := range s.Jobs {
		if job.State == state {
			n++
		}
	}
	return n
}

// writeNow writes what is looked up at each look.
func (m *Metrics) writeNow(p *page) {
	state, at := m.opts.State(), time.Now()
	m.mu.Lock()
	busy, worked, accepted := m.busy, m.workedBy(at), m.beat.accepted
	m.mu.Unlock()
	isReady, ratio, oldest := 0.0, 0.0, 0.0
	if state.Phase == ready {
		isReady = 1
	}
	if state.Slots > 0 {
		ratio = float64(busy) / float64(state.Slots)
	}
	for _, job := range state.Jobs {
		oldest = max(oldest, at.Sub(job.Taken).Seconds())
	}
	p.single("ready", gauge, "1 while the worker takes jobs.", isReady)
	p.single("slots", gauge, "Jobs that may run at a time.", float64(state.Slots))
	p.single("slots_busy", gauge, "Jobs that run.", float64(busy))
	p.single("slot_busy_ratio", gauge, "The share of the slots that is busy.", ratio)
	p.single("slot_busy_seconds_total", counter, "The time that all slots together have been busy.", worked.Seconds())
	p.head("jobs_held", gauge, "Jobs that the worker answers for: waiting, running or delivering.")
	for _, name := range jobStates {
		p.value(float64(state.count(name)), "jobs_held", "state", name)
	}
	p.single("oldest_job_age_seconds", gauge, "The time since the oldest of these was taken; 0 without any.", oldest)
	if depth := m.opts.Journal(); depth.Kept {
		p.single("journal_depth", gauge, "Results in the journal, which the platform does not have yet.", float64(depth.Results))
		p.single("journal_bytes", gauge, "The size of these results.", float64(depth.Bytes))
	}
	if !accepted.IsZero() {
		p.single("heartbeat_age_seconds", gauge, "The time since the platform has answered a heartbeat.", at.Sub(accepted).Seconds())
	}
	p.head("build_info", gauge, "1, with the version of the worker in its labels.")
	p.value(1, "build_info", "commit", m.opts.Commit, "go_version", runtime.Version(), "version", m.opts.Version)
}

func (m *Metrics) writeChecks(p *page) {
	p.head("check_result", gauge, "1 for the latest result of a fitness check: pass, skip, warn, error or fail.")
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.checked {
		p.value(1, "check_result", "check", c.ID, "result", c.Result)
	}
}
