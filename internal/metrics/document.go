package metrics

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// maxListed is how many jobs the document names.
const maxListed = 1000

// document is /status.json.
type document struct {
	State      string            `json:"state"`
	Version    string            `json:"version"`
	Commit     string            `json:"commit,omitempty"`
	WorkerID   string            `json:"workerId"`
	EndpointID string            `json:"endpointId,omitempty"`
	Since      time.Time         `json:"since"`
	Uptime     float64           `json:"uptimeSeconds"`
	Slots      int               `json:"concurrency"`
	Busy       int               `json:"busy"`
	Held       int               `json:"jobsHeld"`
	Jobs       []heldJob         `json:"jobs"`
	Ends       map[string]int    `json:"jobsEnded"`
	Restarts   int               `json:"programRestarts"`
	Heartbeat  *heartbeat        `json:"heartbeat,omitempty"`
	Cache      map[string]Copied `json:"cache,omitempty"`
	Checks     []Check           `json:"checks"`
	Errors     []Problem         `json:"lastErrors"`
}

type heldJob struct {
	ID      string    `json:"id"`
	BatchID string    `json:"batchId,omitempty"`
	State   string    `json:"state"`
	Taken   time.Time `json:"takenAt"`
	Age     float64   `json:"ageSeconds"`
}

type heartbeat struct {
	Tried float64  `json:"triedSecondsAgo"`
	Age   *float64 `json:"acceptedSecondsAgo"` // null: never
}

func (m *Metrics) document() document {
	state, at := m.opts.State(), time.Now()
	d := document{
		State: state.Phase, Version: m.opts.Version, Commit: m.opts.Commit, WorkerID: m.opts.WorkerID, EndpointID: m.opts.EndpointID,
		Since: m.began.UTC(), Uptime: at.Sub(m.began).Seconds(),
		Slots: state.Slots, Held: len(state.Jobs), Jobs: []heldJob{},
	}
	for _, job := range state.Jobs[:min(len(state.Jobs), maxListed)] {
		d.Jobs = append(d.Jobs, heldJob{job.ID, job.BatchID, job.State, job.Taken.UTC(), at.Sub(job.Taken).Seconds()})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d.Busy, d.Restarts, d.Ends, d.Cache = m.busy, m.restarted, maps.Clone(m.ends), maps.Clone(m.cached)
	d.Checks, d.Errors = append([]Check{}, m.checked...), append([]Problem{}, m.errs...)
	slices.Reverse(d.Errors) // the newest first
	if !m.beat.tried.IsZero() {
		d.Heartbeat = &heartbeat{Tried: at.Sub(m.beat.tried).Seconds()}
		if !m.beat.accepted.IsZero() {
			age := at.Sub(m.beat.accepted).Seconds()
			d.Heartbeat.Age = &age
		}
	}
	return d
}

func (m *Metrics) serveDocument(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(m.document()) // whoever asked is gone
}
