package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
)

// benchAPI hands out numbered jobs until there are no more, and counts results.
type benchAPI struct {
	server   *httptest.Server
	left     atomic.Int64
	finished atomic.Int64
	want     int64
	done     chan struct{}
	taken    sync.Map // job → when the take was answered
	delays   []time.Duration
	mu       sync.Mutex
	timed    bool
}

func newBenchAPI(b *testing.B, jobs int) *benchAPI {
	api := &benchAPI{want: int64(jobs), done: make(chan struct{})}
	api.left.Store(int64(jobs))
	api.server = httptest.NewServer(api)
	b.Cleanup(api.server.Close)
	return api
}

func (a *benchAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.Contains(r.URL.Path, "/job-take"):
		a.take(w, r)
	case strings.Contains(r.URL.Path, "/job-done/"):
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
		if a.timed {
			id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
			at, _ := a.taken.Load(id)
			a.mu.Lock()
			a.delays = append(a.delays, time.Since(at.(time.Time)))
			a.mu.Unlock()
		}
		if a.finished.Add(1) == a.want {
			close(a.done)
		}
	case strings.Contains(r.URL.Path, "/job-stop/"):
		<-r.Context().Done()
	}
}

func (a *benchAPI) take(w http.ResponseWriter, r *http.Request) {
	n := int64(1)
	batch := strings.Contains(r.URL.RawQuery, "batch_size=")
	if batch {
		n, _ = strconv.ParseInt(r.URL.Query().Get("batch_size"), 10, 64)
	}
	last := a.left.Add(-n) + n
	if last = min(last, a.want); last <= 0 {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
		return
	}
	jobs := make([]string, 0, n)
	for i := last; i > max(last-n, 0); i-- {
		id := strconv.FormatInt(i, 10)
		jobs = append(jobs, `{"id":"`+id+`","input":{"prompt":"a prompt of a common length"}}`)
		if a.timed {
			a.taken.Store(id, time.Now())
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if batch {
		_, _ = io.WriteString(w, "["+strings.Join(jobs, ",")+"]")
		return
	}
	_, _ = io.WriteString(w, jobs[0])
}

func (a *benchAPI) templates() protocol.Templates {
	return protocol.Templates{
		GetJob:     a.server.URL + "/v2/ep/job-take/$ID?gpu=x",
		PostOutput: a.server.URL + "/v2/ep/job-done/$RUNPOD_POD_ID/$ID?gpu=x",
	}
}

// bare is what the figures are compared with: loops that take a job and post a result, and nothing else.
func (a *benchAPI) bare(loops int) {
	urls := a.templates()
	transport := &http.Transport{MaxIdleConnsPerHost: loops}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range loops {
		go func() {
			for {
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, urls.Take("w", 1, false), nil)
				resp, err := c.Do(req)
				if err != nil {
					return
				}
				var job struct{ ID string }
				_ = json.NewDecoder(resp.Body).Decode(&job)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				post, _ := http.NewRequestWithContext(ctx, http.MethodPost, urls.Done("w", job.ID, false), strings.NewReader(`{"output":"ok"}`))
				resp, err = c.Do(post)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}()
	}
	<-a.done
}

// work is the same through a Worker.
func (a *benchAPI) work(concurrency int, handle handleFunc) {
	platform := client.New(client.Config{URLs: a.templates(), WorkerID: "w", UserAgent: "bench", Concurrency: concurrency})
	defer platform.Close()
	w := New(Config{Concurrency: concurrency, StopLinger: -1}, func() Handler { return leanHandler{newFakeHandler(handle)} }, platform)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _, _ = w.Run(ctx, context.Background()) }()
	<-a.done
	cancel()
	<-ended
}

// leanHandler only calls its function.
type leanHandler struct{ *fakeHandler }

func (h leanHandler) Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	return h.handle(ctx, job, sink)
}

// hop is a no-op job of a handler in another process: it costs a round trip.
func hop(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
	for began := time.Now(); time.Since(began) < 40*time.Microsecond; {
	}
	return protocol.Outcome{Output: json.RawMessage(`"ok"`)}, nil
}

func BenchmarkThroughput(b *testing.B) {
	for _, concurrency := range []int{1, 16} {
		b.Run(fmt.Sprintf("c=%d", concurrency), func(b *testing.B) {
			// In turns, so that whatever else the machine does hits both alike.
			const turns = 8
			var bare, work time.Duration
			jobs := b.N/turns + 1
			for range turns {
				began := time.Now()
				newBenchAPI(b, jobs).bare(concurrency)
				bare += time.Since(began)
				began = time.Now()
				newBenchAPI(b, jobs).work(concurrency, hop)
				work += time.Since(began)
			}
			b.ReportMetric(float64(turns*jobs)/work.Seconds(), "jobs/s")
			b.ReportMetric(0, "ns/op") // of both together: says nothing
			b.ReportMetric(bare.Seconds()/work.Seconds(), "of-bare")
		})
	}
}

// BenchmarkAdded measures take answered → result arrived, as the platform sees it, less the handler's time.
func BenchmarkAdded(b *testing.B) {
	for _, concurrency := range []int{1, 16} {
		b.Run(fmt.Sprintf("c=%d", concurrency), func(b *testing.B) {
			api := newBenchAPI(b, b.N)
			api.timed = true
			api.work(concurrency, output(`"ok"`))
			slices.Sort(api.delays)
			b.ReportMetric(float64(api.delays[len(api.delays)/2].Microseconds()), "µs-p50")
			b.ReportMetric(float64(api.delays[len(api.delays)*99/100].Microseconds()), "µs-p99")
		})
	}
}
