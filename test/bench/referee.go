package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"runpodctl-worker/test/child"
)

// referee is the smallest platform that a worker can work for: it always has a job, and notes when it handed
// each one over and when its result came. It is the same for all that are compared.
type referee struct {
	pause time.Duration // before a take is answered, so that the worker is idle when the job comes
	limit int64         // jobs in all, 0 = without end
	input string        // of every job, JSON
	hold  time.Duration // how long a poll is held that has nothing to say

	refusal int           // what every take is answered with at once, 0 = with a job
	gate    chan struct{} // no job before it is closed, if there is one
	more    []string      // of the workers' environment

	http  *httptest.Server
	quit  chan struct{}
	takes atomic.Int64 // calls
	taken atomic.Int64 // jobs
	done  atomic.Int64
	bytes atomic.Int64  // of results
	first chan struct{} // closed at the first take

	once  sync.Once
	mu    sync.Mutex
	trace map[string]*trip // only with a limit: without one there are too many
	pings []int64          // when they came, by the same clock
}

// trip is one job's way, in nanoseconds of the clock that all processes share.
type trip struct{ taken, called, back, posted int64 }

func newReferee(input string, limit int64, pause time.Duration) *referee {
	r := &referee{
		input: input, limit: limit, pause: pause, hold: 10 * time.Second,
		quit: make(chan struct{}), first: make(chan struct{}), trace: map[string]*trip{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/ep/job-take/", r.take)
	mux.HandleFunc("/v2/ep/job-take-batch/", r.take)
	mux.HandleFunc("/v2/ep/job-done/", r.result)
	mux.HandleFunc("/v2/ep/job-stop/", r.wait)
	mux.HandleFunc("/v2/ep/ping/", r.ping)
	r.http = httptest.NewServer(mux)
	return r
}

func (r *referee) close() {
	close(r.quit)
	r.http.CloseClientConnections()
	r.http.Close()
}

// env is the environment of a worker without its checks of the machine, since those of the SDK ask the network.
func (r *referee) env() []string {
	return append(r.checked(), "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS=true", "RUNPOD_SKIP_GPU_CHECK=true")
}

// checked is the environment of a worker that checks the machine first.
func (r *referee) checked() []string {
	base := r.http.URL + "/v2/ep/"
	return append([]string{
		"RUNPOD_WEBHOOK_GET_JOB=" + base + "job-take/$ID?gpu=none",
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + base + "job-done/$RUNPOD_POD_ID/$ID?gpu=none",
		"RUNPOD_WEBHOOK_POST_STREAM=" + base + "job-stream/$RUNPOD_POD_ID/$ID?gpu=none",
		"RUNPOD_WEBHOOK_PING=" + base + "ping/$RUNPOD_POD_ID?gpu=none",
		"RUNPOD_AI_API_KEY=any", "RUNPOD_ENDPOINT_ID=ep", "RUNPOD_POD_ID=w1",
	}, r.more...)
}

func (r *referee) take(w http.ResponseWriter, req *http.Request) {
	r.once.Do(func() { close(r.first) })
	r.takes.Add(1)
	if r.refusal != 0 {
		w.WriteHeader(r.refusal)
		return
	}
	batch := strings.Contains(req.URL.Path, "/job-take-batch/")
	n := 1
	if size, err := strconv.Atoi(req.URL.Query().Get("batch_size")); err == nil && batch {
		n = size
	}
	if r.pause > 0 {
		time.Sleep(r.pause)
	}
	if r.gate != nil {
		select {
		case <-r.gate:
		case <-r.quit:
			return
		}
	}
	var jobs []string
	for range n {
		id := r.taken.Add(1)
		if r.limit > 0 && id > r.limit {
			break
		}
		jobs = append(jobs, fmt.Sprintf(`{"id":"j%d","input":%s}`, id, r.input))
		r.note(fmt.Sprint("j", id), func(t *trip) { t.taken = monotonic() })
	}
	if len(jobs) == 0 {
		r.wait(w, req)
		return
	}
	answer := jobs[0]
	if batch {
		answer = "[" + strings.Join(jobs, ",") + "]"
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

func (r *referee) result(_ http.ResponseWriter, req *http.Request) {
	now := monotonic()
	if r.limit == 0 {
		if size, err := io.Copy(io.Discard, req.Body); err == nil {
			r.bytes.Add(size)
			r.done.Add(1)
		}
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.done.Add(1)
	var post struct{ Output struct{ Called, Done int64 } }
	if err := json.Unmarshal(body, &post); err != nil { // an output without stamps
		return
	}
	id := req.URL.Path[strings.LastIndexByte(req.URL.Path, '/')+1:]
	r.note(id, func(t *trip) { t.called, t.back, t.posted = post.Output.Called, post.Output.Done, now })
}

// rate is how fast a counter grows, after a contestant has found its pace.
func (r *referee) rate(p *child.Process, counter *atomic.Int64, span time.Duration) (float64, error) {
	time.Sleep(span / 4)
	before, began := counter.Load(), time.Now()
	time.Sleep(span)
	perSecond := float64(counter.Load()-before) / time.Since(began).Seconds()
	if perSecond == 0 {
		return 0, fmt.Errorf("%s did no job: %s", p.Cmd.Path, p.Tail())
	}
	return perSecond, nil
}

func (r *referee) note(id string, fill func(*trip)) {
	if r.limit == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok := r.trace[id]
	if !ok {
		t = &trip{}
		r.trace[id] = t
	}
	fill(t)
}

// trips are the jobs that came back.
func (r *referee) trips() []trip {
	r.mu.Lock()
	defer r.mu.Unlock()
	var trips []trip
	for _, t := range r.trace {
		if t.posted > 0 {
			trips = append(trips, *t)
		}
	}
	return trips
}

// awaitAll waits until all jobs are done.
func (r *referee) awaitAll(p *child.Process) error {
	for end := time.Now().Add(child.Patience); r.done.Load() < r.limit; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d jobs done: %s", r.done.Load(), r.limit, p.Tail())
		}
	}
	return nil
}

func (r *referee) ping(http.ResponseWriter, *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pings = append(r.pings, monotonic())
}

// wait keeps a poll open that has nothing to say.
func (r *referee) wait(w http.ResponseWriter, req *http.Request) {
	select {
	case <-time.After(r.hold):
		w.WriteHeader(http.StatusNoContent)
	case <-req.Context().Done():
	case <-r.quit:
	}
}

// monotonic is what time.monotonic_ns() is in Python.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // this clock is always there
	}
	return ts.Nano()
}
