// Package metrics shows a worker to whoever watches it: metrics for Prometheus, two probes and one document, on a port of
// their own.
package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"runpodctl-worker/internal/protocol"
)

// Options say what there is to show.
type Options struct {
	Version, Commit      string
	WorkerID, EndpointID string
	PingInterval         time.Duration // between two heartbeats
	State                func() State  // asked at each look
	Journal              func() Depth  // asked at each look
}

// Depth is how much waits in the journal.
type Depth struct {
	Kept    bool // there is a journal
	Results int
	Bytes   int64
}

// Metrics keeps what it is told of a worker. Its methods are for any number of goroutines.
type Metrics struct {
	opts     Options
	began    time.Time
	families []family

	taken, restarts     *metrics.Counter
	jobs, takes, pings  family
	take, run, delivery *metrics.PrometheusHistogram

	mu        sync.Mutex
	busy      int           // handlers that run
	worked    time.Duration // by all of them, up to the last change
	changed   time.Time
	ends      map[string]int
	restarted int
	beat      beat
	checked   []Check
	errs      []Problem
}

// Times in seconds that tell a quick call from a long one.
var (
	callBuckets = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	runBuckets  = []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
)

// New returns Metrics that have seen nothing yet.
func New(o Options) *Metrics {
	m := &Metrics{opts: o, began: time.Now(), changed: time.Now(), ends: map[string]int{}}
	m.taken = m.family("jobs_taken_total", counter, "Jobs that the platform has handed over.").with()
	m.restarts = m.family("program_restarts_total", counter, "Starts of the handler's program after the first.").with()
	m.jobs = m.family("jobs_total", counter, "Jobs that have left the worker, by how.")
	m.takes = m.family("takes_total", counter, "Calls for jobs, by what they brought: jobs, nothing or an error.")
	m.pings = m.family("heartbeats_total", counter, "Heartbeats, by what came of them: ok or error.")
	m.take = m.histogram("take_seconds", "How long a call was held that brought jobs.", callBuckets)
	m.run = m.histogram("run_seconds", "How long the handler worked on a job.", runBuckets)
	m.delivery = m.histogram("deliver_seconds", "From the end of a job's handler until the platform had the result.", callBuckets)
	for _, outcome := range outcomes { // so that a rate has a beginning
		m.jobs.with("outcome", outcome)
	}
	return m
}

func (m *Metrics) histogram(name, help string, buckets []float64) *metrics.PrometheusHistogram {
	return m.family(name, histogram, help).series.NewPrometheusHistogramExt(series(name), buckets)
}

// outcomes are the ends that a job can have.
var outcomes = []string{"completed", "failed", "stopped", "released", "undelivered"}

// Took notes the answer to a call for jobs.
func (m *Metrics) Took(jobs int, held time.Duration, err error) {
	switch {
	case jobs > 0:
		m.takes.with("result", "jobs").Inc()
		m.taken.Add(jobs)
		m.take.Update(held.Seconds())
	case err != nil:
		m.takes.with("result", "error").Inc()
	default:
		m.takes.with("result", "nothing").Inc()
	}
}

// Started notes that a handler works on a job.
func (m *Metrics) Started() { m.work(1) }

// Returned notes that it is back.
func (m *Metrics) Returned(ran time.Duration) {
	m.work(-1)
	m.run.Update(ran.Seconds())
}

func (m *Metrics) work(more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.worked = m.workedBy(time.Now())
	m.changed = time.Now()
	m.busy += more
}

// workedBy is how long all handlers together have worked. The lock is held.
func (m *Metrics) workedBy(now time.Time) time.Duration {
	return m.worked + time.Duration(m.busy)*now.Sub(m.changed)
}

// Ended notes how a job has left the worker, and how long that took from the end of its handler.
func (m *Metrics) Ended(outcome string, wait time.Duration) {
	m.jobs.with("outcome", outcome).Inc()
	if outcome == "completed" || outcome == "failed" {
		m.delivery.Update(wait.Seconds())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[outcome]++
}

// Restarted notes a start of the handler's program after the first.
func (m *Metrics) Restarted() {
	m.restarts.Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restarted++
}

// Pinged notes what came of a heartbeat.
func (m *Metrics) Pinged(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(err, protocol.ErrNoURL) {
		m.beat.none = true
		return
	}
	m.beat.tried = time.Now()
	if err != nil {
		m.pings.with("result", "error").Inc()
		return
	}
	m.beat.accepted = m.beat.tried
	m.pings.with("result", "ok").Inc()
}

// Check is the latest result of a fitness check.
type Check struct {
	ID      string `json:"id"`
	Result  string `json:"result"`
	Summary string `json:"summary,omitempty"`
}

// Checked notes the result of a fitness check.
func (m *Metrics) Checked(c Check) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.checked {
		if m.checked[i].ID == c.ID {
			m.checked[i] = c
			return
		}
	}
	m.checked = append(m.checked, c)
}

// Problem is a warning or an error of the log.
type Problem struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Job     string    `json:"job,omitempty"`
	Message string    `json:"message"`
}

// maxProblems is how many of them are kept.
const maxProblems = 10

// Complained notes a warning or an error.
func (m *Metrics) Complained(p Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.errs) == maxProblems {
		m.errs = append(m.errs[:0], m.errs[1:]...)
	}
	m.errs = append(m.errs, p)
}
