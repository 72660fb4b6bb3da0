// Package double stands in for the platform as a worker sees it. It hands out the jobs it is given,
// records every call, and answers any of them as a script says.
package double

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// The calls of a worker.
const (
	Take   = "job-take"
	Batch  = "job-take-batch"
	Done   = "job-done"
	Stream = "job-stream"
	Stop   = "job-stop"
	Ping   = "ping"
)

// Key is the credential in Env, sent by workers as it stands.
const Key = "double-key"

// Call is one request of a worker.
type Call struct {
	At     time.Time // arrival
	Route  string
	Worker string
	Job    string // Done and Stream only
	Query  url.Values
	Header http.Header
	Body   []byte
}

// Terminal reports whether the call brings the result of a job, not its progress.
func (c Call) Terminal() bool {
	var body struct {
		Status string `json:"status"`
	}
	// A body that is no JSON object is certainly no progress.
	return c.Route == Done && (json.Unmarshal(c.Body, &body) != nil || body.Status != "IN_PROGRESS")
}

// Script answers a call, or leaves it to the double by returning false. Scripts run concurrently.
type Script func(w http.ResponseWriter, call Call) bool

// Hold is how long a poll with nothing to say is kept open, unless New is told otherwise.
const Hold = 5 * time.Second

// Double is the stand-in.
type Double struct {
	hold time.Duration
	http *httptest.Server
	quit chan struct{}

	mu      sync.Mutex
	jobs    []json.RawMessage
	arrived chan struct{} // closed and replaced when jobs come
	scripts map[string]Script
	calls   []Call
}

// New starts a double on a free loopback port.
func New(hold time.Duration) *Double {
	d := &Double{
		hold:    hold,
		quit:    make(chan struct{}),
		arrived: make(chan struct{}),
		scripts: map[string]Script{},
	}
	d.http = httptest.NewServer(http.HandlerFunc(d.serve))
	return d
}

// Close lets go of the held polls and stops.
func (d *Double) Close() {
	close(d.quit)
	d.http.CloseClientConnections()
	d.http.Close()
}

// Env is the environment that makes a process this double's worker.
func (d *Double) Env(worker string) []string {
	base := d.http.URL + "/v2/ep/"
	return []string{
		"RUNPOD_WEBHOOK_GET_JOB=" + base + "job-take/$ID?gpu=none",
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + base + "job-done/$RUNPOD_POD_ID/$ID?gpu=none",
		"RUNPOD_WEBHOOK_POST_STREAM=" + base + "job-stream/$RUNPOD_POD_ID/$ID?gpu=none",
		"RUNPOD_WEBHOOK_PING=" + base + "ping/$RUNPOD_POD_ID?gpu=none",
		"RUNPOD_AI_API_KEY=" + Key,
		"RUNPOD_ENDPOINT_ID=ep",
		"RUNPOD_POD_ID=" + worker,
	}
}

// Push puts jobs, each a whole JSON object, at the end of the queue.
func (d *Double) Push(jobs ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, job := range jobs {
		d.jobs = append(d.jobs, json.RawMessage(job))
	}
	close(d.arrived)
	d.arrived = make(chan struct{})
}

// On sets the script of a route; nil takes it away.
func (d *Double) On(route string, script Script) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.scripts[route] = script
}

// Calls are the calls to any of the routes so far, in order of arrival.
func (d *Double) Calls(routes ...string) []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []Call
	for _, call := range d.calls {
		if slices.Contains(routes, call.Route) {
			found = append(found, call)
		}
	}
	return found
}

// Results are the terminal posts of a job so far.
func (d *Double) Results(job string) []Call {
	return slices.DeleteFunc(d.Calls(Done), func(c Call) bool { return c.Job != job || !c.Terminal() })
}

// record keeps the call and finds the script for it.
func (d *Double) record(r *http.Request) (Call, Script, error) {
	call := Call{At: time.Now(), Query: r.URL.Query(), Header: r.Header}
	rest := strings.Split(strings.TrimPrefix(r.URL.Path, "/v2/ep/"), "/")
	call.Route = rest[0]
	if len(rest) > 1 {
		call.Worker = rest[1]
	}
	if len(rest) > 2 {
		call.Job = rest[2]
	}
	var err error
	call.Body, err = io.ReadAll(r.Body)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call)
	return call, d.scripts[call.Route], err
}
