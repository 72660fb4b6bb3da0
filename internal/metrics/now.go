package metrics

import (
	"maps"
	"runtime"
	"slices"
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

// writeLookedUp writes what is asked for at each look.
func (m *Metrics) writeLookedUp(p *page) {
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
	p.single(namespace+"ready", gauge, "1 while the worker takes jobs.", isReady)
	p.single(namespace+"slots", gauge, "Jobs that may run at a time.", float64(state.Slots))
	p.single(namespace+"slots_busy", gauge, "Jobs that run.", float64(busy))
	p.single(namespace+"slot_busy_ratio", gauge, "The share of the slots that is busy.", ratio)
	p.single(namespace+"slot_busy_seconds_total", counter, "The time that all slots together have been busy.", worked.Seconds())
	p.head(namespace+"jobs_held", gauge, "Jobs that the worker answers for: waiting, running or delivering.")
	for _, name := range jobStates {
		p.value(float64(state.count(name)), namespace+"jobs_held", "state", name)
	}
	p.single(namespace+"oldest_job_age_seconds", gauge, "The time since the oldest of these was taken; 0 without any.", oldest)
	if depth := m.opts.Journal(); depth.Kept {
		p.single(namespace+"journal_depth", gauge, "Results in the journal, which the platform does not have yet.", float64(depth.Results))
		p.single(namespace+"journal_bytes", gauge, "The size of these results.", float64(depth.Bytes))
	}
	if !accepted.IsZero() {
		p.single(namespace+"heartbeat_age_seconds", gauge, "The time since the platform has answered a heartbeat.", at.Sub(accepted).Seconds())
	}
	p.head(namespace+"build_info", gauge, "1, with the version of the worker in its labels.")
	p.value(1, namespace+"build_info", "commit", m.opts.Commit, "go_version", runtime.Version(), "version", m.opts.Version)
}

// writeCounted writes what Metrics were told.
func (m *Metrics) writeCounted(p *page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ends := map[string]int{}
	for _, outcome := range outcomes { // also those that no job had, so that a rate has a beginning
		ends[outcome] = m.ends[outcome]
	}
	p.single(namespace+"jobs_taken_total", counter, "Jobs that the platform has handed over.", float64(m.taken))
	p.single(namespace+"program_restarts_total", counter, "Starts of the handler's program after the first.", float64(m.restarted))
	p.counts(namespace+"jobs_total", "Jobs that have left the worker, by how.", "outcome", ends)
	p.counts(namespace+"takes_total", "Calls for jobs, by what they brought: jobs, nothing or an error.", "result", m.takes)
	p.counts(namespace+"heartbeats_total", "Heartbeats, by what came of them: ok or error.", "result", m.pings)
	m.writeCached(p)
	p.times(namespace+"take_seconds", "How long a call was held that brought jobs.", m.take)
	p.times(namespace+"run_seconds", "How long the handler worked on a job.", m.run)
	p.times(namespace+"deliver_seconds", "From the end of a job's handler until the platform had the result.", m.deliver)
	p.head(namespace+"check_result", gauge, "1 for the latest result of a fitness check: pass, skip, warn, error or fail.")
	for _, c := range m.checked {
		p.value(1, namespace+"check_result", "check", c.ID, "result", c.Result)
	}
}

// writeCached tells of the cache, once it has done something. The lock is held.
func (m *Metrics) writeCached(p *page) {
	if len(m.cached) == 0 {
		return
	}
	for _, metric := range []struct {
		name, help string
		of         func(Copied) float64
	}{
		{"cache_files_total", "Files that the cache has copied, by direction: hydrate or sync.", func(c Copied) float64 { return float64(c.Files) }},
		{"cache_bytes_total", "Bytes of these files.", func(c Copied) float64 { return float64(c.Bytes) }},
		{"cache_seconds_total", "The time that it took to copy them.", func(c Copied) float64 { return c.Seconds }},
	} {
		p.head(namespace+metric.name, counter, metric.help)
		for _, direction := range slices.Sorted(maps.Keys(m.cached)) {
			p.value(metric.of(m.cached[direction]), namespace+metric.name, "direction", direction)
		}
	}
}
