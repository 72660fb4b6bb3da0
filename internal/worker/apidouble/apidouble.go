// Package apidouble is a scripted platform for tests: it hands out the jobs that it is given, records every call
// that a worker makes, and misbehaves on demand.
package apidouble

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"runpodctl-worker/internal/protocol"
)

// The kinds of calls. A job-done call is either a Progress or a Done, a take of a batch is a Take.
const (
	Take     = "job-take"
	Done     = "job-done"
	Progress = "progress"
	Stream   = "job-stream"
	Stop     = "job-stop"
	Ping     = "ping"
)

// Call is one request of the worker.
type Call struct {
	Kind   string
	At     time.Time
	Worker string // the path segment
	Job    string // of a post
	Path   string
	Query  url.Values
	Header http.Header
	Body   string
	Status int // what was answered; 0 while it is open, or when the connection was dropped
}

// Reply is an answer that replaces the usual one.
type Reply struct {
	Status int // 0 is 200
	Body   string
	Header map[string]string
	Delay  time.Duration // before the answer, or before the usual one where Usual is set
	Drop   bool          // cut the connection instead of answering
	Usual  bool
}

// API is the platform. Its fields may be set before the first call.
type API struct {
	URL  string
	Hold time.Duration // of polls that find nothing (20 s)
	// Dial connects to an API that is in memory; nil otherwise.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu      sync.Mutex
	changed chan struct{} // closed when jobs or stops come
	queue   []string
	stops   []string
	calls   []*Call
	scripts map[string][]Reply
	hooks   map[string]func(Call) *Reply
}

// New starts an API on the loopback interface.
func New(t testing.TB) *API {
	t.Helper()
	api := newAPI()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	api.URL = server.URL
	return api
}

// NewInMemory starts an API that uses no network, so that it can live in a bubble of testing/synctest.
func NewInMemory(t testing.TB) *API {
	t.Helper()
	api := newAPI()
	network := NewPipes()
	server := &http.Server{Handler: api}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(network) }()
	t.Cleanup(func() { _ = server.Close(); <-served })
	api.URL, api.Dial = "http://platform.test", network.Dial
	return api
}

func newAPI() *API {
	return &API{
		Hold:    20 * time.Second,
		changed: make(chan struct{}),
		scripts: map[string][]Reply{},
		hooks:   map[string]func(Call) *Reply{},
	}
}

// Templates are the URLs that a worker's environment would hold.
func (a *API) Templates() protocol.Templates {
	base := a.URL + "/v2/ep"
	return protocol.Templates{
		GetJob:     base + "/job-take/$ID?gpu=test",
		PostOutput: base + "/job-done/$RUNPOD_POD_ID/$ID?gpu=test",
		PostStream: base + "/job-stream/$RUNPOD_POD_ID/$ID?gpu=test",
		Ping:       base + "/ping/$RUNPOD_POD_ID?gpu=test",
	}
}

// Job is a job object with an empty input.
func Job(id string) string { return `{"id":"` + id + `","input":{}}` }

// Offer queues job objects.
func (a *API) Offer(jobs ...string) { a.change(func() { a.queue = append(a.queue, jobs...) }) }

// StopJobs asks the worker to stop jobs.
func (a *API) StopJobs(ids ...string) { a.change(func() { a.stops = append(a.stops, ids...) }) }

// Script answers the next calls of a kind with the given replies, one each.
func (a *API) Script(kind string, replies ...Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.scripts[kind] = append(a.scripts[kind], replies...)
}

// On asks hook about every call of a kind; nil from it means the usual answer. A nil hook ends it.
func (a *API) On(kind string, hook func(Call) *Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hooks[kind] = hook
}

// Waiting is the number of jobs that nobody has taken.
func (a *API) Waiting() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue)
}

// Calls are the calls of a kind so far, in order of arrival.
func (a *API) Calls(kind string) []Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	var calls []Call
	for _, c := range a.calls {
		if c.Kind == kind {
			calls = append(calls, *c)
		}
	}
	return calls
}

// Posts are the calls of a kind for one job.
func (a *API) Posts(kind, job string) []Call {
	return slices.DeleteFunc(a.Calls(kind), func(c Call) bool { return c.Job != job })
}

// Accepted are the posts of a kind that were answered with 2xx.
func (a *API) Accepted(kind string) []Call {
	return slices.DeleteFunc(a.Calls(kind), func(c Call) bool { return c.Status < 200 || c.Status > 299 })
}

func (a *API) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}
