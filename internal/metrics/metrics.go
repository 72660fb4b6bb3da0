// Package metrics shows a worker to whoever watches it: metrics for Prometheus, two probes and one document, on a port of
// their own.
package metrics

import (
	"errors"
	"sync"
	"time"

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
	opts  Options
	began time.Time

	mu                 sync.Mutex
	taken, restarted   int
	takes, pings, ends map[string]int
	take, run, deliver times
	busy               int           // handlers that run
	worked             time.Duration // by all of them, up to the last change
	changed            time.Time
	beat               beat
	checked            []Check
	errs               []Problem
	cached             map[string]Copied // by direction
}

// New returns Metrics that have seen nothing yet.
func New(o Options) *Metrics {
	return &Metrics{
		opts: o, began: time.Now(), changed: time.Now(),
		takes: map[string]int{}, pings: map[string]int{}, ends: map[string]int{}, cached: map[string]Copied{},
		take: newTimes(callBounds), run: newTimes(runBounds), deliver: newTimes(callBounds),
	}
}

// outcomes are the ends that a job can have.
var outcomes = []string{"completed", "failed", "stopped", "released", "undelivered"}

// Took notes the answer to a call for jobs.
func (m *Metrics) Took(jobs int, held time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case jobs > 0:
		m.takes["jobs"]++
		m.taken += jobs
		m.take.add(held)
	case err != nil:
		m.takes["error"]++
	default:
		m.takes["nothing"]++
	}
}

// Received notes a job that came without a call for it.
func (m *Metrics) Received() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken++
}

// Started notes that a handler works on a job.
func (m *Metrics) Started() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work(1)
}

// Returned notes that it is back.
func (m *Metrics) Returned(ran time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.work(-1)
	m.run.add(ran)
}

// work changes how many handlers run. The lock is held.
func (m *Metrics) work(more int) {
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[outcome]++
	if outcome == "completed" || outcome == "failed" {
		m.deliver.add(wait)
	}
}

// Restarted notes a start of the handler's program after the first.
func (m *Metrics) Restarted() {
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
		m.pings["error"]++
		return
	}
	m.beat.accepted = m.beat.tried
	m.pings["ok"]++
}

// Copied is what the cache has copied in one direction.
type Copied struct {
	Files   int     `json:"files"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Cached notes what the cache has copied: direction is hydrate or sync.
func (m *Metrics) Cached(direction string, more Copied) {
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
