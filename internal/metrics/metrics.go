// Package metrics shows a worker to whoever watches it: metrics for Prometheus, two probes and one document, on a port of
// their own.
package metrics

import (
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"runpodctl-worker/internal/protocol"
)

const namespace = "runpodctl_worker"

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
	registry *prometheus.Registry

	taken, restarts     prometheus.Counter
	jobs, takes, pings  *prometheus.CounterVec
	files, bytes, spent *prometheus.CounterVec // of the cache
	take, run, delivery prometheus.Histogram
	checks              *prometheus.GaugeVec

	mu        sync.Mutex
	busy      int           // handlers that run
	worked    time.Duration // by all of them, up to the last change
	changed   time.Time
	ends      map[string]int
	restarted int
	beat      beat
	checked   []Check
	errs      []Problem
	cached    map[string]Copied
}

// Times in seconds that tell a quick call from a long one.
var (
	callBuckets = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	runBuckets  = []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
)

// New returns Metrics with a registry of their own.
func New(o Options) *Metrics {
	m := &Metrics{opts: o, began: time.Now(), changed: time.Now(), registry: prometheus.NewRegistry(), ends: map[string]int{}, cached: map[string]Copied{}}
	m.taken = m.counter("jobs_taken_total", "Jobs that the platform has handed over.")
	m.restarts = m.counter("program_restarts_total", "Starts of the handler's program after the first.")
	m.jobs = m.counters("jobs_total", "Jobs that have left the worker, by how.", "outcome")
	m.takes = m.counters("takes_total", "Calls for jobs, by what they brought: jobs, nothing or an error.", "result")
	m.pings = m.counters("heartbeats_total", "Heartbeats, by what came of them: ok or error.", "result")
	m.files = m.counters("cache_files_total", "Files that the cache has copied, by direction: hydrate or sync.", "direction")
	m.bytes = m.counters("cache_bytes_total", "Bytes of these files.", "direction")
	m.spent = m.counters("cache_seconds_total", "The time that it took to copy them.", "direction")
	m.take = m.histogram("take_seconds", "How long a call was held that brought jobs.", callBuckets)
	m.run = m.histogram("run_seconds", "How long the handler worked on a job.", runBuckets)
	m.delivery = m.histogram("deliver_seconds", "From the end of a job's handler until the platform had the result.", callBuckets)
	m.checks = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "check_result", Help: "1 for the latest result of a fitness check: pass, skip, warn, error or fail.",
	}, []string{"check", "result"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "1, with the version of the worker in its labels.",
		ConstLabels: prometheus.Labels{"version": o.Version, "commit": o.Commit, "go_version": runtime.Version()},
	})
	build.Set(1)
	for _, outcome := range outcomes { // so that a rate has a beginning
		m.jobs.WithLabelValues(outcome)
	}
	m.registry.MustRegister(
		m.checks, build, (*now)(m),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// outcomes are the ends that a job can have.
var outcomes = []string{"completed", "failed", "stopped", "released", "undelivered"}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counters(name, help, label string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, []string{label})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

// Took notes the answer to a call for jobs.
func (m *Metrics) Took(jobs int, held time.Duration, err error) {
	switch {
	case jobs > 0:
		m.takes.WithLabelValues("jobs").Inc()
		m.taken.Add(float64(jobs))
		m.take.Observe(held.Seconds())
	case err != nil:
		m.takes.WithLabelValues("error").Inc()
	default:
		m.takes.WithLabelValues("nothing").Inc()
	}
}

// Started notes that a handler works on a job.
func (m *Metrics) Started() { m.work(1) }

// Returned notes that it is back.
func (m *Metrics) Returned(ran time.Duration) {
	m.work(-1)
	m.run.Observe(ran.Seconds())
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
	m.jobs.WithLabelValues(outcome).Inc()
	if outcome == "completed" || outcome == "failed" {
		m.delivery.Observe(wait.Seconds())
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
		m.pings.WithLabelValues("error").Inc()
		return
	}
	m.beat.accepted = m.beat.tried
	m.pings.WithLabelValues("ok").Inc()
}

// Copied is what the cache has copied in one direction.
type Copied struct {
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Cached notes what the cache has copied: direction is hydrate or sync.
func (m *Metrics) Cached(direction string, more Copied) {
	m.files.WithLabelValues(direction).Add(float64(more.Files))
	m.bytes.WithLabelValues(direction).Add(float64(more.Bytes))
	m.spent.WithLabelValues(direction).Add(more.Seconds)
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.cached[direction]
	m.cached[direction] = Copied{sum.Files + more.Files, sum.Bytes + more.Bytes, sum.Seconds + more.Seconds}
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
	m.checks.DeletePartialMatch(prometheus.Labels{"check": c.ID})
	m.checks.WithLabelValues(c.ID, c.Result).Set(1)
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
