package realtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/handler/echo"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/realtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ realtime.Handler = (*echo.Handler)(nil)
	_ realtime.Handler = (*fake)(nil)
	_ realtime.Resizer = (*fake)(nil)
)

// fake is a handler whose jobs say what they want: their input is the name of what happens.
type fake struct {
	startErr error
	loading  bool

	mu      sync.Mutex
	limit   int
	err     error
	entered chan string   // the id of each job that has begun
	finish  chan struct{} // lets one "wait" end
	resized chan struct{}
	exited  chan struct{}
	stopped bool
}

func newFake(limit int) *fake {
	return &fake{limit: limit, entered: make(chan string, 100), finish: make(chan struct{}), resized: make(chan struct{}), exited: make(chan struct{})}
}

func (f *fake) Start(ctx context.Context) (protocol.Ready, error) {
	if f.loading {
		<-ctx.Done()
		return protocol.Ready{}, context.Cause(ctx)
	}
	return protocol.Ready{Name: "fake"}, f.startErr
}

func (f *fake) Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	fields, err := protocol.Fields(job.Raw)
	if err != nil {
		return protocol.Outcome{}, err
	}
	f.entered <- job.ID
	switch string(fields["input"]) {
	case `"fail"`:
		return protocol.Outcome{Output: json.RawMessage(`{"k":1}`), Error: `it "failed"`}, nil
	case `"refresh"`:
		return protocol.Outcome{Output: json.RawMessage(`1`), Refresh: true}, nil
	case `"nothing"`:
		return protocol.Outcome{}, nil
	case `"panic"`:
		panic("on the titanic")
	case `"generate"`:
		sink.Progress(json.RawMessage(`"half"`))
		for _, item := range []string{`1`, `{"a":2}`} {
			if err := sink.Chunk(json.RawMessage(item)); err != nil {
				return protocol.Outcome{}, err
			}
		}
		return protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}, nil
	case `"generate nothing"`:
		return protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}, nil
	case `"generate and fail"`:
		_ = sink.Chunk(json.RawMessage(`1`))
		return protocol.Outcome{Error: "half way", Stream: true}, nil
	case `"generate too much"`:
		for {
			if err := sink.Chunk(make(json.RawMessage, 1<<20)); err != nil {
				return protocol.Outcome{Error: err.Error(), Stream: true}, nil
			}
		}
	case `"wait"`:
		select {
		case <-f.finish:
		case <-f.exited:
			return protocol.Outcome{}, f.Err()
		case <-ctx.Done():
			return protocol.Outcome{}, context.Cause(ctx)
		}
	}
	return protocol.Outcome{Output: job.Raw}, nil
}

func (f *fake) Limit() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.limit
}

func (f *fake) setLimit(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = n
}

func (f *fake) Exited() <-chan struct{}  { return f.exited }
func (f *fake) Resized() <-chan struct{} { return f.resized }

func (f *fake) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *fake) crash(err error) {
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	close(f.exited)
}

func (f *fake) Stop(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	return nil
}

// rig is a worker that serves on a port of its own.
type rig struct {
	*testing.T
	url            string
	endFetch, stop context.CancelFunc
	done           chan error
	client         *http.Client
}

func serve(t *testing.T, cfg realtime.Config, h realtime.Handler) *rig {
	t.Helper()
	fetch, endFetch := context.WithCancel(context.Background())
	work, stop := context.WithCancel(context.Background())
	r := &rig{T: t, endFetch: endFetch, stop: stop, done: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	addr := make(chan string, 1)
	cfg.Endpoint = "ep"
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Listen = func(ctx context.Context) (net.Listener, error) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err == nil {
			addr <- l.Addr().String()
		}
		return l, err
	}
	go func() { r.done <- realtime.Serve(fetch, work, cfg, h) }()
	r.url = "http://" + <-addr + "/ep/realtime"
	t.Cleanup(func() {
		stop()
		endFetch()
		r.client.CloseIdleConnections()
	})
	return r
}

type answer struct {
	code int
	body string
}

func (r *rig) post(ctx context.Context, body string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, string(b)}, err
}

// later posts a job and delivers its answer; one that does not come has the code 0.
func (r *rig) later(ctx context.Context, body string) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		a, err := r.post(ctx, body)
		if err != nil {
			a = answer{0, err.Error()}
		}
		c <- a
	}()
	return c
}

func (r *rig) end() error {
	r.Helper()
	r.endFetch()
	select {
	case err := <-r.done:
		return err
	case <-time.After(time.Minute):
		r.Fatal("it does not end")
		return nil
	}
}

func TestAnswers(t *testing.T) {
	r := serve(t, realtime.Config{}, newFake(0))
	for _, tt := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"a result", `{"id":"a","input":{"x":1},"extra":5}`, 200, `{"output":{"id":"a","input":{"x":1},"extra":5}}`},
		{"an error", `{"id":"a","input":"fail"}`, 200, `{"output":{"k":1},"error":"it \"failed\""}`},
		{"a fresh worker", `{"id":"a","input":"refresh"}`, 200, `{"output":1,"stopPod":true}`},
		{"an empty result", `{"id":"a","input":"nothing"}`, 200, `{}`},
		{"a generator", `{"id":"a","input":"generate"}`, 200, `{"output":[1,{"a":2}]}`},
		{"an empty generator", `{"id":"a","input":"generate nothing"}`, 200, `{"output":[]}`},
		{"a generator that fails", `{"id":"a","input":"generate and fail"}`, 200, `{"error":"half way"}`},
		{"an endless generator", `{"id":"a","input":"generate too much"}`, 200, `{"error":"the items of the stream have more than 20000000 bytes"}`},
		{"a panic", `{"id":"a","input":"panic"}`, 500, `{"error":"the handler panicked: on the titanic"}`},
		{"no input", `{"id":"a"}`, 422, `{"detail":[{"type":"missing","loc":["body","input"],"msg":"Field required"}]}`},
		{"null input", `{"id":"a","input":null}`, 422, `{"detail":[{"type":"missing","loc":["body","input"],"msg":"Field required"}]}`},
		{"neither", `{}`, 422, `{"detail":[{"type":"missing","loc":["body","id"],"msg":"Field required"},{"type":"missing","loc":["body","input"],"msg":"Field required"}]}`},
		{"another spelling", `{"ID":"a","input":1}`, 422, `{"detail":[{"type":"missing","loc":["body","id"],"msg":"Field required"}]}`},
		{"an id that is a number", `{"id":5,"input":1}`, 422, `{"detail":[{"type":"string_type","loc":["body","id"],"msg":"Input should be a string that is not empty"}]}`},
		{"an empty id", `{"id":"","input":1}`, 422, `{"detail":[{"type":"string_type","loc":["body","id"],"msg":"Input should be a string that is not empty"}]}`},
		{"a list", `[]`, 422, `{"detail":[{"type":"dict_type","loc":["body"],"msg":"Input should be an object with id and input"}]}`},
		{"null", `null`, 422, `{"detail":[{"type":"dict_type","loc":["body"],"msg":"Input should be an object with id and input"}]}`},
		{"no JSON", `x`, 422, `{"detail":[{"type":"json_invalid","loc":["body"],"msg":"JSON decode error"}]}`},
		{"nothing", ``, 422, `{"detail":[{"type":"json_invalid","loc":["body"],"msg":"JSON decode error"}]}`},
		{"too much", `{"id":"a","input":"` + strings.Repeat("x", protocol.MaxRunSyncBody) + `"}`, 400, `{"status":400,"title":"Bad Request","detail":"bad request: body: exceeded max body size of 20MB"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := r.post(t.Context(), tt.body)
			require.NoError(t, err)
			require.Equal(t, tt.code, a.code)
			require.Equal(t, tt.want, a.body)
		})
	}
	t.Run("another endpoint", func(t *testing.T) {
		resp, err := r.client.Post(strings.Replace(r.url, "/ep/", "/other/", 1), "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
	})
	t.Run("another method", func(t *testing.T) {
		resp, err := r.client.Get(r.url)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	})
	require.NoError(t, r.end())
}

func job(id, input string) string { return `{"id":"` + id + `","input":"` + input + `"}` }

func TestConcurrency(t *testing.T) {
	t.Run("as many as the handler can run", func(t *testing.T) {
		f := newFake(2)
		r := serve(t, realtime.Config{}, f)
		var answers []<-chan answer
		for _, id := range []string{"a", "b", "c"} {
			answers = append(answers, r.later(t.Context(), job(id, "wait")))
			if id != "c" {
				require.Equal(t, id, <-f.entered)
			}
		}
		f.finish <- struct{}{}
		require.Equal(t, "c", <-f.entered, "when one of the two is done")
		f.setLimit(3)
		f.resized <- struct{}{}
		answers = append(answers, r.later(t.Context(), job("d", "wait")))
		require.Equal(t, "d", <-f.entered, "there is more room")
		for range 3 {
			f.finish <- struct{}{}
		}
		for _, c := range answers {
			require.Equal(t, 200, (<-c).code)
		}
		require.NoError(t, r.end())
	})
	t.Run("a client that does not wait", func(t *testing.T) {
		f := newFake(1)
		r := serve(t, realtime.Config{}, f)
		first := r.later(t.Context(), job("a", "wait"))
		require.Equal(t, "a", <-f.entered)
		ctx, cancel := context.WithCancel(t.Context())
		second := r.later(ctx, job("b", "wait"))
		cancel()
		require.Zero(t, (<-second).code)
		f.finish <- struct{}{}
		require.Equal(t, 200, (<-first).code)
		require.NoError(t, r.end())
	})
	t.Run("a job whose client has gone", func(t *testing.T) {
		f := newFake(1)
		r := serve(t, realtime.Config{}, f)
		ctx, cancel := context.WithCancel(t.Context())
		gone := r.later(ctx, job("a", "wait"))
		require.Equal(t, "a", <-f.entered)
		cancel()
		require.Zero(t, (<-gone).code)
		next := r.later(t.Context(), job("b", "x"))
		f.finish <- struct{}{} // it is still there to take this
		require.Equal(t, 200, (<-next).code)
		require.NoError(t, r.end())
	})
}

func TestHeartbeat(t *testing.T) {
	f := newFake(0)
	held, over := make(chan func() []string, 1), make(chan struct{})
	r := serve(t, realtime.Config{Heartbeat: func(ctx context.Context, ids func() []string) {
		held <- ids
		<-ctx.Done()
		close(over)
	}}, f)
	ids := <-held
	require.Empty(t, ids())
	var answers []<-chan answer
	for _, id := range []string{"b", "a", "a"} {
		answers = append(answers, r.later(t.Context(), job(id, "wait")))
		<-f.entered
	}
	require.Equal(t, []string{"a", "b"}, ids())
	r.endFetch()
	for range answers[1:] {
		f.finish <- struct{}{}
	}
	require.Eventually(t, func() bool { return len(ids()) == 1 }, time.Minute, time.Millisecond)
	select {
	case <-over:
		t.Fatal("no heartbeat while a job runs")
	default:
	}
	f.finish <- struct{}{}
	for _, c := range answers {
		require.Equal(t, 200, (<-c).code)
	}
	require.NoError(t, r.end())
	<-over
	require.Empty(t, ids())
}

func TestEnd(t *testing.T) {
	t.Run("what runs is seen through, and nothing else", func(t *testing.T) {
		f := newFake(1)
		r := serve(t, realtime.Config{}, f)
		first := r.later(t.Context(), job("a", "wait"))
		require.Equal(t, "a", <-f.entered)
		waiting := r.later(t.Context(), job("b", "wait"))
		r.endFetch()
		require.Equal(t, 503, (<-waiting).code)
		a, err := r.post(t.Context(), job("c", "x"))
		require.NoError(t, err)
		require.Equal(t, answer{503, `{"status":503,"title":"Service Unavailable","detail":"the worker is stopping"}`}, a)
		f.finish <- struct{}{}
		require.Equal(t, 200, (<-first).code)
		require.NoError(t, r.end())
		require.True(t, f.stopped)
		_, err = r.post(t.Context(), job("d", "x"))
		require.Error(t, err, "refused, or the end of a connection that the client had kept")
	})
	for name, end := range map[string]func(*rig){
		"at once":               func(r *rig) { r.stop() },
		"at once, in the end":   func(r *rig) { r.endFetch(); r.stop() },
		"when time has run out": func(r *rig) { r.endFetch() },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := realtime.Config{}
			if strings.HasPrefix(name, "when") {
				cfg.GracePeriod = 50 * time.Millisecond
			}
			f := newFake(0)
			r := serve(t, cfg, f)
			left := r.later(t.Context(), job("a", "wait"))
			<-f.entered
			end(r)
			unfinished, ok := errors.AsType[*realtime.UnfinishedError](r.end())
			require.True(t, ok)
			require.Equal(t, []string{"a"}, unfinished.Jobs)
			require.NotEqual(t, 200, (<-left).code)
			require.True(t, f.stopped)
		})
	}
	t.Run("with the handler's program", func(t *testing.T) {
		f := newFake(0)
		r := serve(t, realtime.Config{}, f)
		running := r.later(t.Context(), job("a", "wait"))
		<-f.entered
		f.crash(errors.New("exit code 3"))
		require.Equal(t, answer{500, `{"error":"exit code 3"}`}, <-running)
		require.EqualError(t, <-r.done, "the handler's program ended: exit code 3")
		require.True(t, f.stopped)
	})
}

func TestStart(t *testing.T) {
	var log bytes.Buffer
	cfg := realtime.Config{
		Endpoint: "ep", Log: slog.New(slog.NewTextHandler(&log, nil)),
		Listen: func(context.Context) (net.Listener, error) { return nil, errors.New("address in use") },
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for _, tt := range []struct {
		name    string
		change  func(*realtime.Config, *fake)
		stopped bool
		want    string
	}{
		{"no endpoint", func(c *realtime.Config, _ *fake) { c.Endpoint = "" }, false, "set RUNPOD_ENDPOINT_ID"},
		{"a handler that does not start", func(_ *realtime.Config, f *fake) { f.startErr = io.EOF }, false, "the handler did not start: EOF"},
		{"a handler that loads for ever", func(c *realtime.Config, f *fake) { c.ReadyTimeout, f.loading = 1, true }, false, "it was not ready after 1ns"},
		{"an unfit worker", func(c *realtime.Config, _ *fake) {
			c.OnReady = func(context.Context, protocol.Ready) error { return io.ErrNoProgress }
		}, false, io.ErrNoProgress.Error()},
		{"a port in use", func(*realtime.Config, *fake) {}, false, "listen for realtime requests: address in use"},
		{"a stop while it loads", func(_ *realtime.Config, f *fake) { f.loading = true }, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, f := cfg, newFake(0)
			tt.change(&cfg, f)
			fetch := context.Background()
			if tt.stopped {
				fetch = over
			}
			err := realtime.Serve(fetch, context.Background(), cfg, f)
			if tt.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.want)
			}
			require.True(t, f.stopped)
		})
	}
	require.Empty(t, log.String())
}

func TestHeartbeatThatGoesWrongEndsTheWorker(t *testing.T) {
	f := newFake(0)
	r := serve(t, realtime.Config{Heartbeat: func(context.Context, func() []string) { panic("out of order") }}, f)
	select {
	case err := <-r.done:
		require.ErrorContains(t, err, "a mistake in this program: out of order")
	case <-time.After(time.Minute):
		require.Fail(t, "the worker goes on")
	}
	require.True(t, f.stopped)
}
