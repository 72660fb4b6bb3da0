package emulator

import (
	"sync"
	"time"
)

// workers remembers who called lately.
type workers struct {
	mu   sync.Mutex
	seen map[string]sighting
}

type sighting struct {
	at        time.Time
	took      bool // it has asked for jobs, so it has finished starting
	unhealthy bool
}

// sign is what a call says of its worker.
type sign int

const (
	alive sign = iota
	asking
	unhealthy
)

// workerCounts are the workers in /health.
type workerCounts struct{ idle, initializing, running, unhealthy int }

func newWorkers() *workers { return &workers{seen: map[string]sighting{}} }

func (w *workers) saw(worker string, now time.Time, s sign) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[worker] = sighting{at: now, took: s == asking || w.seen[worker].took, unhealthy: s == unhealthy}
}

// count sorts the workers heard of since a time. A worker with a job counts however long it is silent.
func (w *workers) count(since time.Time, busy map[string]int) workerCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := workerCounts{running: len(busy)}
	for worker, s := range w.seen {
		switch {
		case busy[worker] > 0, s.at.Before(since):
		case s.unhealthy:
			n.unhealthy++
		case s.took:
			n.idle++
		default:
			n.initializing++
		}
	}
	return n
}

// forget drops the workers not heard of since a time.
func (w *workers) forget(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for worker, s := range w.seen {
		if s.at.Before(since) {
			delete(w.seen, worker)
		}
	}
}
