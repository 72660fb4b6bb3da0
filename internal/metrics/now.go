package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// now collects what is looked up at each look: Metrics under the name of a Collector.
type now Metrics

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	readyDesc  = describe("ready", "1 while the worker takes jobs.")
	slotsDesc  = describe("slots", "Jobs that may run at a time.")
	busyDesc   = describe("slots_busy", "Jobs that run.")
	ratioDesc  = describe("slot_busy_ratio", "The share of the slots that is busy.")
	workedDesc = describe("slot_busy_seconds_total", "The time that all slots together have been busy.")
	heldDesc   = describe("jobs_held", "Jobs that the worker answers for: waiting, running or delivering.", "state")
	oldestDesc = describe("oldest_job_age_seconds", "The time since the oldest of these was taken; 0 without any.")
	depthDesc  = describe("journal_depth", "Results in the journal, which the platform does not have yet.")
	bytesDesc  = describe("journal_bytes", "The size of these results.")
	beatDesc   = describe("heartbeat_age_seconds", "The time since the platform has answered a heartbeat.")
)

// Describe implements prometheus.Collector.
func (n *now) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{readyDesc, slotsDesc, busyDesc, ratioDesc, workedDesc, heldDesc, oldestDesc, depthDesc, bytesDesc, beatDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (n *now) Collect(out chan<- prometheus.Metric) {
	state, at := n.opts.State(), time.Now()
	n.mu.Lock()
	busy, worked, accepted := n.busy, (*Metrics)(n).workedBy(at), n.beat.accepted
	n.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
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
	gauge(readyDesc, isReady)
	gauge(slotsDesc, float64(state.Slots))
	gauge(busyDesc, float64(busy))
	gauge(ratioDesc, ratio)
	out <- prometheus.MustNewConstMetric(workedDesc, prometheus.CounterValue, worked.Seconds())
	for _, name := range jobStates {
		gauge(heldDesc, float64(state.count(name)), name)
	}
	gauge(oldestDesc, oldest)
	if depth := n.opts.Journal(); depth.Kept {
		gauge(depthDesc, float64(depth.Results))
		gauge(bytesDesc, float64(depth.Bytes))
	}
	if !accepted.IsZero() {
		gauge(beatDesc, at.Sub(accepted).Seconds())
	}
}
