package metrics

import (
	"fmt"
	"net/http"
	"time"
)

// beat is the heartbeat as far as it is known.
type beat struct {
	none            bool      // the platform wants none
	tried, accepted time.Time // the latest
}

// grace is what a heartbeat may take, beside the intervals that may be missed.
const (
	missed = 3
	grace  = 10 * time.Second
)

// alive tells why a worker should be taken for dead: its heartbeat has begun, and no longer tries. What the platform
// answers is not the worker's doing.
func (m *Metrics) alive(at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.beat.none || m.beat.tried.IsZero() {
		return nil
	}
	if silent := at.Sub(m.beat.tried); silent > missed*m.opts.PingInterval+grace {
		return fmt.Errorf("no heartbeat was tried for %s", silent.Round(time.Second))
	}
	return nil
}

// prepared tells why a worker takes no jobs.
func (m *Metrics) prepared(time.Time) error {
	if phase := m.opts.State().Phase; phase != ready {
		return fmt.Errorf("the worker is %s", phase)
	}
	return nil
}

// probe answers 200, or 503 with the reason.
func probe(ask func(time.Time) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err := ask(time.Now()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, err)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}
