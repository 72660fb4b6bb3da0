package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker/apidouble"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a worker with the real client, on a platform in memory. Inside a bubble its time is virtual, so a
// test may wait for minutes and compare exactly.
type rig struct {
	*testing.T
	api     *apidouble.API
	handler *fakeHandler // the first
	mu      sync.Mutex
	lives   []*fakeHandler     // all that were asked for
	reborn  func(*fakeHandler) // changes one that is not the first
	logs    *logs
	worker  *Worker
	drain   context.CancelFunc // the first signal
	abort   context.CancelFunc // the second
	reason  Reason
	err     error
	ended   chan struct{}
	endedAt time.Time
}

type handleFunc func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error)

// bubble runs a test in virtual time.
func bubble(t *testing.T, cfg Config, handle handleFunc, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cfg, handle)
		test(r)
		r.stop()
	})
}

func newRig(t *testing.T, cfg Config, handle handleFunc) *rig {
	t.Helper()
	r := &rig{
		T:       t,
		api:     apidouble.NewInMemory(t),
		handler: newFakeHandler(handle),
		logs:    &logs{},
		ended:   make(chan struct{}),
	}
	cfg.Log = slog.New(r.logs)
	platform := client.New(client.Config{
		URLs: r.api.Templates(), WorkerID: "w1", Key: "secret", PingInterval: cfg.PingInterval, Dial: r.api.Dial,
	})
	t.Cleanup(platform.Close)
	r.worker = New(cfg, r.born, platform)
	return r
}

func (r *rig) start() *rig {
	fetch, drain := context.WithCancel(context.Background())
	work, abort := context.WithCancel(context.Background())
	r.drain, r.abort = drain, abort
	go func() {
		defer close(r.ended)
		r.reason, r.err = r.worker.Run(fetch, work)
		r.endedAt = time.Now()
	}()
	r.Cleanup(func() { drain(); abort() })
	return r
}

// stop ends the worker, whatever it is doing.
func (r *rig) stop() {
	if r.drain == nil {
		return
	}
	r.drain()
	synctest.Wait()
	time.Sleep(time.Second)
	r.abort()
	<-r.ended
}

// programs are the handlers that the worker has asked for so far.
func (r *rig) programs() []*fakeHandler {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lives)
}

// born is the factory of the worker.
func (r *rig) born() Handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.handler
	if len(r.lives) > 0 {
		h = newFakeHandler(r.handler.handle)
		h.ready, h.startTime, h.concurrency, h.starts = r.handler.ready, r.handler.startTime, r.handler.concurrency, r.handler.starts
		if r.reborn != nil {
			r.reborn(h)
		}
	}
	r.lives = append(r.lives, h)
	return h
}

// await waits until cond holds, and fails after a limit of virtual time.
func (r *rig) await(limit time.Duration, what string, cond func() bool) {
	r.Helper()
	for end := time.Now().Add(limit); !cond(); time.Sleep(max(time.Millisecond, limit/1000)) {
		if time.Now().After(end) {
			require.FailNow(r, "not within "+limit.String()+": "+what)
		}
	}
}

// results waits for n accepted results.
func (r *rig) results(limit time.Duration, n int) []apidouble.Call {
	r.Helper()
	r.await(limit, fmt.Sprintf("%d results", n), func() bool { return len(r.api.Accepted(apidouble.Done)) >= n })
	got := r.api.Accepted(apidouble.Done)
	require.Len(r, got, n)
	return got
}

func (r *rig) end(limit time.Duration) (Reason, error) {
	r.Helper()
	select {
	case <-r.ended:
	case <-time.After(limit):
		require.FailNow(r, "the worker has not ended")
	}
	return r.reason, r.err
}

type fakeHandler struct {
	ready       protocol.Ready
	handle      handleFunc
	limit       atomic.Int64
	concurrency func(current int) (int, error)
	startTime   time.Duration
	startError  error
	end         sync.Once
	exited      chan struct{}
	err         error
	starts      *sync.Map // job id → *atomic.Int64
	stops       atomic.Int64
	killed      atomic.Bool // it was given no time to stop
	resized     chan struct{}
}

func newFakeHandler(handle handleFunc) *fakeHandler {
	return &fakeHandler{handle: handle, exited: make(chan struct{}), starts: &sync.Map{}, resized: make(chan struct{}, 1)}
}

func (h *fakeHandler) Start(ctx context.Context) (protocol.Ready, error) {
	if !sleep(ctx, h.startTime) {
		return protocol.Ready{}, ctx.Err()
	}
	return h.ready, h.startError
}

type programKey struct{}

// programOf is the program that a job runs in.
func programOf(ctx context.Context) *fakeHandler { return ctx.Value(programKey{}).(*fakeHandler) }

// Handle runs the job. As in a real program, nothing survives its end.
func (h *fakeHandler) Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	n, _ := h.starts.LoadOrStore(job.ID, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	living, die := context.WithCancel(context.WithValue(ctx, programKey{}, h))
	defer die()
	dying := make(chan struct{})
	go func() {
		defer close(dying)
		select {
		case <-h.exited:
			die()
		case <-living.Done():
		}
	}()
	outcome, err := h.handle(living, job, sink)
	die()
	<-dying
	if err != nil && ctx.Err() == nil && closed(h.exited) && !errors.Is(err, protocol.ErrNotBegun) {
		err = h.err
	}
	return outcome, err
}

// crash ends the program.
func (h *fakeHandler) crash(err error) {
	h.end.Do(func() { h.err = err; close(h.exited) })
}

func (h *fakeHandler) started(id string) int {
	n, ok := h.starts.Load(id)
	if !ok {
		return 0
	}
	return int(n.(*atomic.Int64).Load())
}

func (h *fakeHandler) Concurrency(_ context.Context, current int) (int, error) {
	return h.concurrency(current)
}
func (h *fakeHandler) Limit() int               { return int(h.limit.Load()) }
func (h *fakeHandler) Resized() <-chan struct{} { return h.resized }
func (h *fakeHandler) Exited() <-chan struct{}  { return h.exited }
func (h *fakeHandler) Err() error               { return h.err }
func (h *fakeHandler) Stop(ctx context.Context) error {
	h.stops.Add(1)
	h.killed.Store(ctx.Err() != nil)
	h.crash(errors.New("stopped"))
	return nil
}

// output is a handler that returns a JSON value at once.
func output(value string) handleFunc {
	return func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
		return protocol.Outcome{Output: json.RawMessage(value)}, nil
	}
}

// lasting is a handler whose jobs last as long as their id says, as in "a-1500ms".
func lasting(ctx context.Context, job protocol.Job, _ protocol.Sink) (protocol.Outcome, error) {
	_, length, _ := strings.Cut(job.ID, "-")
	d, err := time.ParseDuration(length)
	if err != nil {
		return protocol.Outcome{}, err
	}
	if !sleep(ctx, d) {
		return protocol.Outcome{}, ctx.Err()
	}
	return protocol.Outcome{Output: json.RawMessage(`"done"`)}, nil
}

func offer(r *rig, ids ...string) {
	var jobs []string
	for _, id := range ids {
		jobs = append(jobs, apidouble.Job(id))
	}
	r.api.Offer(jobs...) // at once: an open take gets as many of them as it asks for
}

// logs keeps what was logged.
type logs struct {
	mu      sync.Mutex
	records []slog.Record
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }
func (l *logs) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logs) WithGroup(string) slog.Handler            { return l }
func (l *logs) Handle(_ context.Context, rec slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, rec)
	return nil
}

// atLeast are the messages of a level and above, with their attributes. That a job failed is no word about the worker.
func (l *logs) atLeast(level slog.Level) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, rec := range l.records {
		if rec.Level < level || rec.Message == jobFailed {
			continue
		}
		line := rec.Message
		rec.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		lines = append(lines, line)
	}
	return lines
}

// gaps are the times between calls.
func gaps(calls []apidouble.Call) []time.Duration {
	var d []time.Duration
	for i := 1; i < len(calls); i++ {
		d = append(d, calls[i].At.Sub(calls[i-1].At))
	}
	return d
}

// redial replaces the connections of a rig that has not started.
func (r *rig) redial(dial func(context.Context, string, string) (net.Conn, error)) {
	platform := client.New(client.Config{URLs: r.api.Templates(), WorkerID: "w1", Dial: dial})
	r.Cleanup(platform.Close)
	r.worker.platform = platform
}

// withoutURLs takes every URL away that a platform may leave out.
func (r *rig) withoutURLs() {
	urls := r.api.Templates()
	urls.PostStream, urls.Ping = "", ""
	platform := client.New(client.Config{URLs: urls, WorkerID: "w1", Dial: r.api.Dial})
	r.Cleanup(platform.Close)
	r.worker.platform = platform
}
