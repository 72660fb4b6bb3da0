package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// fake is a Backend that records what it is told.
type fake struct {
	jobs    []json.RawMessage
	ids     []string
	err     error
	onTake  func()
	heard   []any
	untaken []json.RawMessage
}

func (f *fake) note(args ...any) error { f.heard = args; return f.err }

func (f *fake) Take(_ context.Context, worker string, n int) ([]json.RawMessage, error) {
	if f.onTake != nil {
		f.onTake()
	}
	return f.jobs, f.note("take", worker, n)
}

func (f *fake) Untake(_ string, jobs []json.RawMessage) { f.untaken = jobs }

func (f *fake) Done(_ context.Context, worker, job string, d Done) error {
	return f.note("done", worker, job, d)
}

func (f *fake) Progress(_ context.Context, worker, job string, value json.RawMessage) error {
	return f.note("progress", worker, job, string(value))
}

func (f *fake) Chunk(_ context.Context, worker, job string, item json.RawMessage) error {
	return f.note("chunk", worker, job, string(item))
}

func (f *fake) Stops(_ context.Context, worker string) ([]string, error) {
	return f.ids, f.note("stops", worker)
}

func (f *fake) Ping(_ context.Context, worker string, p Ping) error {
	return f.note("ping", worker, p)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func call(t *testing.T, f *fake, o Options, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	o.Log = quiet()
	rec := httptest.NewRecorder()
	New(f, o).ServeHTTP(rec, r)
	return rec
}

// The routes as a worker of the Python SDK uses them, with the templates that platforms are known to give.
func TestRoutes(t *testing.T) {
	two := []json.RawMessage{json.RawMessage(`{"id":"a","input":1}`), json.RawMessage(`{"id":"b","input":2}`)}
	for name, row := range map[string]struct {
		method, url, body string
		backend           fake
		heard             []any
		status            int
		answer            string
	}{
		"take": {
			"GET", "/v2/ep/job-take/w1?gpu=X&job_in_progress=0", "",
			fake{jobs: two[:1]},
			[]any{"take", "w1", 1},
			200, `{"id":"a","input":1}`,
		},
		"take, nothing there": {
			"GET", "/v2/ep/job-take/w1?gpu=X&job_in_progress=1", "",
			fake{},
			[]any{"take", "w1", 1},
			204, ``,
		},
		"take without ?": {
			"GET", "/v2/IDE/job-take/$RUNPOD_POD_ID&job_in_progress=0", "",
			fake{jobs: two[:1]},
			[]any{"take", "$RUNPOD_POD_ID", 1},
			200, `{"id":"a","input":1}`,
		},
		"take at the root": {
			"GET", "/job-take/w1?", "",
			fake{jobs: two[:1]},
			[]any{"take", "w1", 1},
			200, `{"id":"a","input":1}`,
		},
		"batch": {
			"GET", "/v2/ep/job-take-batch/w1?gpu=X&batch_size=4&job_in_progress=0", "",
			fake{jobs: two},
			[]any{"take", "w1", 4},
			200, `[{"id":"a","input":1},{"id":"b","input":2}]`,
		},
		"batch of one": {
			"GET", "/v2/ep/job-take-batch/w1?batch_size=4", "",
			fake{jobs: two[:1]},
			[]any{"take", "w1", 4},
			200, `[{"id":"a","input":1}]`,
		},
		"batch without ?": {
			"GET", "/v2/ep/job-take-batch/w1&batch_size=4&job_in_progress=0", "",
			fake{},
			[]any{"take", "w1", 4},
			204, ``,
		},
		"batch, absurd": {
			"GET", "/v2/ep/job-take-batch/w1?batch_size=1000000", "",
			fake{},
			[]any{"take", "w1", maxBatch},
			204, ``,
		},
		"batch, no number": {
			"GET", "/v2/ep/job-take-batch/w1?batch_size=x", "",
			fake{},
			[]any{"take", "w1", 1},
			204, ``,
		},
		"done": {
			"POST", "/v2/ep/job-done/w1/j1?gpu=X&isStream=false", `{"output":{"a":1}}`,
			fake{},
			[]any{"done", "w1", "j1", Done{Output: json.RawMessage(`{"a":1}`)}},
			200, `{}`,
		},
		"done, stream": {
			"POST", "/v2/ep/job-done/w1/j1?gpu=X&isStream=true", `{"output":[],"stopPod":true}`,
			fake{},
			[]any{"done", "w1", "j1", Done{Output: json.RawMessage(`[]`), Stream: true, StopPod: true}},
			200, `{}`,
		},
		"done without ?": {
			"POST", "/v2/ep/job-done/w1/j1&isStream=true", `{"error":"boom"}`,
			fake{},
			[]any{"done", "w1", "j1", Done{Error: "boom", Stream: true}},
			200, `{}`,
		},
		"done, non-string error": {
			"POST", "/v2/ep/job-done/w1/j1?isStream=false", `{"error":{}}`,
			fake{},
			nil, 400, `{"status":400,"title":"Bad Request","detail":"bad request: error: must be a JSON string"}`,
		},
		"done, unknown job": {
			"POST", "/v2/ep/job-done/w1/j1?isStream=false", `{}`,
			fake{err: protocol.ErrUnknownJob},
			[]any{"done", "w1", "j1", Done{}},
			404, `{"status":404,"title":"Not Found","detail":"job not found"}`,
		},
		"done twice": {
			"POST", "/v2/ep/job-done/w1/j1?isStream=false", `{}`,
			fake{err: protocol.ErrJobSettled},
			[]any{"done", "w1", "j1", Done{}},
			404, `{"status":404,"title":"Not Found","detail":"job has already ended"}`,
		},
		"done, not the holder": {
			"POST", "/v2/ep/job-done/w1/j1?isStream=false", `{}`,
			fake{err: protocol.ErrNotHolder},
			[]any{"done", "w1", "j1", Done{}},
			404, `{"status":404,"title":"Not Found","detail":"job is with another worker"}`,
		},
		"done, our fault": {
			"POST", "/v2/ep/job-done/w1/j1?isStream=false", `{}`,
			fake{err: errors.New("secret")},
			[]any{"done", "w1", "j1", Done{}},
			500, `{"status":500,"title":"Internal Server Error","detail":"internal error"}`,
		},
		"progress": {
			"POST", "/v2/ep/job-done/w1/j1?isStream=false", `{"status":"IN_PROGRESS","output":"50%"}`,
			fake{},
			[]any{"progress", "w1", "j1", `"50%"`},
			200, `{}`,
		},
		"chunk": {
			"POST", "/v2/ep/job-stream/w1/j1?gpu=X&isStream=false", `{"output":"tok"}`,
			fake{},
			[]any{"chunk", "w1", "j1", `"tok"`},
			200, `{}`,
		},
		"chunk null": {
			"POST", "/v2/ep/job-stream/w1/j1?isStream=false", `{"output":null}`,
			fake{},
			[]any{"chunk", "w1", "j1", `null`},
			200, `{}`,
		},
		"chunk without output": {
			"POST", "/v2/ep/job-stream/w1/j1?isStream=false", `{}`,
			fake{},
			nil, 400, `{"status":400,"title":"Bad Request","detail":"bad request: output: is missing"}`,
		},
		"stops": {
			"GET", "/v2/ep/job-stop/w1?gpu=X", "",
			fake{ids: []string{"a", `b"`}},
			[]any{"stops", "w1"},
			200, `{"jobsToStop":["a","b\""]}`,
		},
		"no stops": {
			"GET", "/v2/ep/job-stop/w1?gpu=X", "",
			fake{},
			[]any{"stops", "w1"},
			204, ``,
		},
		"ping": {
			"GET", "/v2/ep/ping/w1?gpu=X&job_id=a,b&runpod_version=1.12.0", "",
			fake{},
			[]any{"ping", "w1", Ping{Jobs: []string{"a", "b"}, Version: "1.12.0"}},
			200, `{"status":"ok"}`,
		},
		"ping, escaped list": {
			"GET", "/v2/ep/ping/w1?job_id=a%2Cb", "",
			fake{},
			[]any{"ping", "w1", Ping{Jobs: []string{"a", "b"}}},
			200, `{"status":"ok"}`,
		},
		"ping, unhealthy": {
			"GET", "/v2/ep/ping/w1?status=unhealthy&check=_disk_check&reason=too+full", "",
			fake{},
			[]any{"ping", "w1", Ping{Unhealthy: true, Check: "_disk_check", Reason: "too full"}},
			200, `{"status":"ok"}`,
		},
		"unknown route": {
			"GET", "/v2/ep/job-give/w1", "",
			fake{},
			nil, 404, `{"status":404,"title":"Not Found","detail":"no such route"}`,
		},
		"wrong method": {
			"POST", "/v2/ep/job-take/w1", "",
			fake{},
			nil, 405, `{"status":405,"title":"Method Not Allowed","detail":"job-take is not called with POST"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(row.method, row.url, strings.NewReader(row.body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("charset", "utf-8")
			rec := call(t, &row.backend, Options{}, r)
			require.Equal(t, row.status, rec.Code)
			require.Equal(t, row.answer, rec.Body.String())
			require.Equal(t, row.heard, row.backend.heard)
			if row.answer != "" {
				require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
			}
		})
	}
}

func TestKey(t *testing.T) {
	for name, row := range map[string]struct {
		header string
		status int
		answer string
	}{
		"raw":    {"K", 204, ""},
		"bearer": {"Bearer K", 204, ""},
		"lower":  {"bearer K", 204, ""},
		"none":   {"", 401, `{"status":401,"title":"Unauthorized","detail":"no token provided"}`},
		"bare":   {"Bearer ", 401, `{"status":401,"title":"Unauthorized","detail":"invalid api key"}`},
		"wrong":  {"Bearer k", 401, `{"status":401,"title":"Unauthorized","detail":"invalid api key"}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/job-take/w1", nil)
			r.Header.Set("Authorization", row.header)
			rec := call(t, &fake{}, Options{Key: "K"}, r)
			require.Equal(t, row.status, rec.Code)
			require.Equal(t, row.answer, rec.Body.String())
		})
	}
}

func TestBodyLimits(t *testing.T) {
	body := func(total int64) string {
		return `{"output":"` + strings.Repeat("x", int(total)-len(`{"output":""}`)) + `"}`
	}
	for name, row := range map[string]struct {
		url    string
		size   int64
		length bool // the size is announced
		status int
		detail string
	}{
		"largest chunk":          {"/job-stream/w/j", protocol.MaxChunk, true, 200, ""},
		"chunk too large":        {"/job-stream/w/j", protocol.MaxChunk + 1, true, 400, "bad request: body: exceeded max body size of 1MiB"},
		"chunk too large, piped": {"/job-stream/w/j", protocol.MaxChunk + 1, false, 400, "bad request: body: exceeded max body size of 1MiB"},
		"largest chunk, piped":   {"/job-stream/w/j", protocol.MaxChunk, false, 200, ""},
		"result too large":       {"/job-done/w/j", protocol.MaxResult + 1, true, 400, "bad request: body: exceeded max body size of 20MB"},
	} {
		t.Run(name, func(t *testing.T) {
			var reader io.Reader = strings.NewReader(body(row.size))
			if !row.length {
				reader = io.MultiReader(reader)
			}
			rec := call(t, &fake{}, Options{}, httptest.NewRequest("POST", row.url, reader))
			require.Equal(t, row.status, rec.Code)
			if row.detail != "" {
				require.JSONEq(t, string(protocol.NewProblem(400, row.detail).JSON()), rec.Body.String())
			}
		})
	}
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	f := &fake{}
	rec := call(t, f, Options{}, httptest.NewRequest("POST", "/job-done/w/j", bytes.NewReader([]byte("{\"output\":\"a\xffb\"}"))))
	require.Equal(t, 200, rec.Code)
	require.Equal(t, Done{Output: json.RawMessage(`"a` + "\uFFFD" + `b"`)}, f.heard[3])
}

func TestTakerHasGone(t *testing.T) {
	jobs := []json.RawMessage{json.RawMessage(`{"id":"a","input":1}`), json.RawMessage(`{"id":"b","input":2}`)}
	t.Run("before the answer", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fake{jobs: jobs, onTake: cancel}
		rec := call(t, f, Options{}, httptest.NewRequest("GET", "/job-take-batch/w?batch_size=2", nil).WithContext(ctx))
		require.Empty(t, rec.Body.String())
		require.Equal(t, jobs, f.untaken)
	})
	for name, w := range map[string]*brokenWriter{
		"at the write": {failWrite: true},
		"at the flush": {failFlush: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{jobs: jobs}
			New(f, Options{Log: quiet()}).ServeHTTP(w, httptest.NewRequest("GET", "/job-take-batch/w?batch_size=2", nil))
			require.Equal(t, jobs, f.untaken)
		})
	}
	t.Run("after the answer", func(t *testing.T) {
		f := &fake{jobs: jobs}
		call(t, f, Options{}, httptest.NewRequest("GET", "/job-take-batch/w?batch_size=2", nil))
		require.Nil(t, f.untaken)
	})
}

type brokenWriter struct {
	httptest.ResponseRecorder
	failWrite, failFlush bool
}

func (w *brokenWriter) Header() http.Header { return http.Header{} }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.failWrite {
		return 0, errors.New("broken pipe")
	}
	return len(b), nil
}

func (w *brokenWriter) FlushError() error {
	if w.failFlush {
		return errors.New("broken pipe")
	}
	return nil
}
