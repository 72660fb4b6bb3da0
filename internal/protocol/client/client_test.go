package client

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// against is a client of a server that answers with handle.
func against(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	c := New(Config{
		URLs: protocol.Templates{
			GetJob:     server.URL + "/v2/ep/job-take/$RUNPOD_POD_ID?gpu=a+b",
			PostOutput: server.URL + "/v2/ep/job-done/$RUNPOD_POD_ID/$ID?gpu=a+b",
			PostStream: server.URL + "/v2/ep/job-stream/$RUNPOD_POD_ID/$ID?gpu=a+b",
			Ping:       server.URL + "/v2/ep/ping/$RUNPOD_POD_ID?gpu=a+b",
		},
		WorkerID:     "w1",
		Key:          "the-key",
		UserAgent:    "runpodctl-worker/1.2.3 (abc)",
		Concurrency:  4,
		PingInterval: 50 * time.Millisecond,
	})
	t.Cleanup(c.Close)
	return c
}

func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestClient_Requests(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	ctx := context.Background()
	tests := []struct {
		name              string
		call              func(*Client) error
		method, uri, body string
		requestID         string
	}{
		{
			"take one", func(c *Client) error { _, err := c.Take(ctx, 1, false); return err },
			"GET", "/v2/ep/job-take/w1?gpu=a+b&job_in_progress=0", "", "",
		},
		{
			"take a batch", func(c *Client) error { _, err := c.Take(ctx, 3, true); return err },
			"GET", "/v2/ep/job-take-batch/w1?gpu=a+b&batch_size=3&job_in_progress=1", "", "",
		},
		{
			"stops", func(c *Client) error { _, err := c.Stops(ctx); return err },
			"GET", "/v2/ep/job-stop/w1?gpu=a+b", "", "",
		},
		{
			"ping", func(c *Client) error { return c.Ping(ctx, []string{"a", "b"}) },
			"GET", "/v2/ep/ping/w1?gpu=a+b&job_id=a,b&runpod_version=" + protocol.SDKVersion, "", "",
		},
		{
			"idle ping", func(c *Client) error { return c.Ping(ctx, nil) },
			"GET", "/v2/ep/ping/w1?gpu=a+b&runpod_version=" + protocol.SDKVersion, "", "",
		},
		{
			"done", func(c *Client) error { return c.Done(ctx, "j-u1", protocol.NewBody([]byte(`{"output":"<é>"}`)), true) },
			"POST", "/v2/ep/job-done/w1/j-u1?gpu=a+b&isStream=true", `{"output":"<é>"}`, "j-u1",
		},
		{
			"progress", func(c *Client) error { return c.Progress(ctx, "j", []byte(`[1]`)) },
			"POST", "/v2/ep/job-done/w1/j?gpu=a+b&isStream=false", `{"status":"IN_PROGRESS","output":[1]}`, "j",
		},
		{
			"chunk", func(c *Client) error { return c.Chunk(ctx, "j", []byte(`"x"`)) },
			"POST", "/v2/ep/job-stream/w1/j?gpu=a+b&isStream=false", `{"output":"x"}`, "j",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got *http.Request
			var body []byte
			c := against(t, func(_ http.ResponseWriter, r *http.Request) {
				got = r
				body, _ = io.ReadAll(r.Body)
			})
			require.NoError(t, tt.call(c))
			require.Equal(t, tt.method, got.Method)
			require.Equal(t, tt.uri, got.RequestURI)
			require.Equal(t, tt.body, string(body))
			require.Equal(t, "the-key", got.Header.Get("Authorization"))
			require.Equal(t, "runpodctl-worker/1.2.3 (abc)", got.Header.Get("User-Agent"))
			require.Equal(t, "gzip", got.Header.Get("Accept-Encoding"))
			require.Equal(t, tt.requestID, got.Header.Get("X-Request-Id"))
			if tt.method == "POST" {
				require.Equal(t, form, got.Header.Get("Content-Type"))
				require.Equal(t, "utf-8", got.Header.Get("Charset"))
				require.EqualValues(t, len(tt.body), got.ContentLength)
			}
		})
	}
}

func TestClient_NoKeyNoHeader(t *testing.T) {
	c := against(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, ok := r.Header["Authorization"]; ok {
			t.Error("sent")
		}
	})
	c = New(Config{URLs: c.urls, WorkerID: "w1"})
	t.Cleanup(c.Close)
	require.NoError(t, c.Ping(context.Background(), nil))
}

func TestTake_Answers(t *testing.T) {
	const asJSON, asHTML = "application/json", "text/html"
	tests := map[string]struct {
		handle http.HandlerFunc
		jobs   []string
		status int    // of a *protocol.StatusError
		decode string // in a *protocol.DecodeError
	}{
		"object":          {handle: answer(200, asJSON, `{"id":"a","input":{}}`), jobs: []string{"a"}},
		"array":           {handle: answer(200, asJSON, ` [{"id":"a","input":1},{"id":"b"}] `), jobs: []string{"a", "b"}},
		"empty array":     {handle: answer(200, asJSON, `[]`)},
		"wrong type":      {handle: answer(200, "text/plain", `{"id":"a","input":{}}`), jobs: []string{"a"}},
		"204":             {handle: answer(204, asJSON, "")},
		"400":             {handle: answer(400, asJSON, `{"detail":"x"}`), status: 400},
		"empty":           {handle: answer(200, asJSON, "")},
		"null":            {handle: answer(200, asJSON, "null")},
		"html":            {handle: answer(200, asHTML, "<html>"), decode: "neither a job"},
		"number":          {handle: answer(200, asJSON, "7"), decode: "neither a job"},
		"cut object":      {handle: answer(200, asJSON, `{"id":"a","inp`), decode: "unexpected end"},
		"no id":           {handle: answer(200, asJSON, `{"input":{}}`), decode: "no \"id\""},
		"bad entries":     {handle: answer(200, asJSON, `[null,{"id":"a"},{"id":7},{"id":"b"}]`), jobs: []string{"a", "b"}, decode: "entry 3"},
		"cut array":       {handle: answer(200, asJSON, `[{"id":"a"},{"id":"b","inp`), jobs: []string{"a"}, decode: "entry 2"},
		"array not ended": {handle: answer(200, asJSON, `[{"id":"a"}`), jobs: []string{"a"}, decode: "EOF"},
		"401":             {handle: answer(401, asJSON, `{"detail":"no token provided"}`), status: 401},
		"429":             {handle: answer(429, asJSON, ""), status: 429},
		"500":             {handle: answer(500, asJSON, ""), status: 500},
		"302":             {handle: answer(302, asHTML, ""), status: 302},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			jobs, err := against(t, tt.handle).Take(context.Background(), 2, false)
			var ids []string
			for _, job := range jobs {
				ids = append(ids, job.ID)
			}
			require.Equal(t, tt.jobs, ids)
			var status *protocol.StatusError
			var decode *protocol.DecodeError
			switch {
			case tt.status != 0:
				require.ErrorAs(t, err, &status)
				require.Equal(t, tt.status, status.Code)
			case tt.decode != "":
				require.ErrorAs(t, err, &decode)
				require.ErrorContains(t, err, tt.decode)
			default:
				require.NoError(t, err)
			}
		})
	}
}

// JP-08
func TestTake_Compressed(t *testing.T) {
	t.Run("gzip is decoded", func(t *testing.T) {
		c := against(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zip := gzip.NewWriter(w)
			_, _ = io.WriteString(zip, `{"id":"a","input":{}}`)
			_ = zip.Close()
		})
		jobs, err := c.Take(context.Background(), 1, false)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
	})
	t.Run("br was not offered", func(t *testing.T) {
		var offered []string
		c := against(t, func(w http.ResponseWriter, r *http.Request) {
			offered = r.Header["Accept-Encoding"]
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "\x0b\x02\x80{}\x03")
		})
		_, err := c.Take(context.Background(), 1, false)
		require.ErrorContains(t, err, `"br"`)
		require.Equal(t, []string{"gzip"}, offered)
	})
}

func TestSend_Refusal(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>\n"+strings.Repeat("é", 1000))
	})
	err := c.Done(context.Background(), "j", protocol.NewBody([]byte("{}")), false)
	var status *protocol.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, "job-done", status.Call)
	require.Equal(t, 7*time.Second, status.RetryAfter)
	require.True(t, status.HTML)
	require.LessOrEqual(t, len(status.Body), maxQuoted)
	require.NotContains(t, err.Error(), "é", "a page is not quoted")
}

// What an answer says to a post stands in its first line.
func TestSend_AnAnswerWithoutEnd(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusNotFound} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			c := against(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(code)
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-time.After(30 * time.Second):
				}
			})
			begin := time.Now()
			err := c.Done(context.Background(), "j", protocol.NewBody([]byte("{}")), false)
			require.Less(t, time.Since(begin), 20*time.Second)
			if code == http.StatusOK {
				require.NoError(t, err)
				return
			}
			var status *protocol.StatusError
			require.ErrorAs(t, err, &status)
			require.Equal(t, code, status.Code)
		})
	}
}

// A proxy may quote what it was sent.
func TestSend_RefusalWithoutTheKey(t *testing.T) {
	const key = "key-0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, strings.Repeat("x", maxQuoted-12)+" "+r.Header.Get("Authorization")+" at /x?token=abc")
	}))
	defer server.Close()
	c := New(Config{URLs: protocol.Templates{PostOutput: server.URL}, Key: key})
	defer c.Close()
	err := c.Done(context.Background(), "j", protocol.NewBody([]byte("{}")), false)
	require.ErrorContains(t, err, " [REDACTED]")
	require.NotContains(t, err.Error(), "key-0")
}

// An error names neither the URL nor what is in it.
func TestSend_TransportErrorHidesTheURL(t *testing.T) {
	c := New(Config{URLs: protocol.Templates{Ping: "http://127.0.0.1:1/ping/x?token=hidden", GetJob: "http://bad\x7f/job-take/"}})
	t.Cleanup(c.Close)
	err := c.Ping(context.Background(), nil)
	require.ErrorContains(t, err, "refused")
	require.NotContains(t, err.Error(), "hidden")
	_, err = c.Take(context.Background(), 1, false)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "job-take/")
}

func TestClient_MissingURLs(t *testing.T) {
	c := New(Config{URLs: protocol.Templates{GetJob: "http://127.0.0.1:1/jobs"}})
	t.Cleanup(c.Close)
	ctx := context.Background()
	require.ErrorIs(t, c.Ping(ctx, nil), protocol.ErrNoURL)
	require.ErrorIs(t, c.Chunk(ctx, "j", []byte("1")), protocol.ErrNoURL)
	require.ErrorIs(t, c.Done(ctx, "j", protocol.NewBody([]byte("{}")), false), protocol.ErrNoURL)
	require.ErrorIs(t, c.Progress(ctx, "j", []byte("1")), protocol.ErrNoURL)
	_, err := c.Stops(ctx)
	require.ErrorIs(t, err, protocol.ErrNoURL)
}

func TestStops_Answers(t *testing.T) {
	tests := map[string]struct {
		body string
		ids  []string
		bad  bool
	}{
		"ids":        {`{"jobsToStop":["a","b"]}`, []string{"a", "b"}, false},
		"empty":      {``, nil, false},
		"no key":     {`{}`, nil, false},
		"null":       {`null`, nil, false},
		"mixed":      {`{"jobsToStop":["a",1,null]}`, []string{"a"}, true},
		"not a list": {`{"jobsToStop":"a"}`, nil, true},
		"a string":   {`"a"`, nil, true},
		"html":       {`<html>`, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ids, err := against(t, answer(200, "application/json", tt.body)).Stops(context.Background())
			require.Equal(t, tt.ids, ids)
			var decode *protocol.DecodeError
			require.Equal(t, tt.bad, errors.As(err, &decode))
		})
	}
}

// A heartbeat that hangs ends by itself, and does not wait for a connection that others hold.
func TestPing_OwnTimeout(t *testing.T) {
	c := against(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	require.ErrorIs(t, c.Ping(context.Background(), nil), context.DeadlineExceeded)
	require.NotSame(t, c.calls, c.heartbeat)
}

// One connection serves call after call, also when the body of an answer is of no interest.
// FG-19
func TestUnhealthy(t *testing.T) {
	const url = "http://platform.test/ping/$RUNPOD_POD_ID?gpu=x"
	long := strings.Repeat("é", 300)
	for name, row := range map[string]struct {
		url, key, reason string
		want             string // as the platform reads it; empty: no call
	}{
		"a check":       {url, "key", "3 GB & less\n", "3 GB & less\n"},
		"a long reason": {url, "key", long, long[:2*protocol.MaxReason]},
		"not UTF-8":     {url, "key", "a\xff", "a\uFFFD"},
		"no URL":        {"", "key", "x", ""},
		"no key":        {url, "", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls := make(chan *http.Request, 1)
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { calls <- r }))
			defer server.Close()
			c := New(Config{
				URLs: protocol.Templates{Ping: strings.Replace(row.url, "http://platform.test", server.URL, 1)}, WorkerID: "w1", Key: row.key,
			})
			defer c.Close()
			require.NoError(t, c.Unhealthy(context.Background(), "_memory_check", row.reason))
			if row.want == "" {
				require.Empty(t, calls)
				return
			}
			r := <-calls
			require.Equal(t, "/ping/w1", r.URL.Path)
			require.Equal(t, "key", r.Header.Get("Authorization"))
			require.Equal(t, map[string][]string{
				"gpu": {"x"}, "status": {"unhealthy"}, "check": {"_memory_check"}, "reason": {row.want}, "runpod_version": {protocol.SDKVersion},
			}, map[string][]string(r.URL.Query()))
		})
	}
}

func TestUnhealthy_IsBounded(t *testing.T) {
	c := against(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	require.ErrorIs(t, c.Unhealthy(context.Background(), "check", "reason"), context.DeadlineExceeded)
}

func TestSend_KeepsConnections(t *testing.T) {
	conns := map[string]bool{}
	c := against(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conns[r.RemoteAddr] = true
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, strings.Repeat(" ", 10_000))
	})
	for range 5 {
		_, err := c.Take(context.Background(), 1, false)
		require.NoError(t, err)
		require.Error(t, c.Done(context.Background(), "j", protocol.NewBody([]byte("{}")), false))
	}
	require.Len(t, conns, 1)
}

func TestSend_BoundsTheAnswer(t *testing.T) {
	c := against(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 2 << 10 {
			_, _ = io.WriteString(w, strings.Repeat(" ", 1<<10))
		}
	})
	_, err := c.Stops(context.Background())
	require.ErrorContains(t, err, "more than 1048576 bytes")
}

// A header is bounded too: it is read before anybody looks at it.
func TestSend_BoundsTheHeader(t *testing.T) {
	for name, tt := range map[string]struct {
		size int
		err  string
	}{
		"much":     {maxAnswerHeader / 2, ""},
		"too much": {maxAnswerHeader + 1, "exceeded 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := against(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Much", strings.Repeat("x", tt.size))
				w.WriteHeader(http.StatusNoContent)
			})
			_, err := c.Take(context.Background(), 1, false)
			if tt.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.err)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"3":                             3 * time.Second,
		" 1.5 ":                         1500 * time.Millisecond,
		"-1":                            0,
		"soon":                          0,
		"Thu, 01 Jan 2026 12:00:30 GMT": 30 * time.Second,
		"Thu, 01 Jan 2026 11:00:00 GMT": 0,
		"86400":                         maxRetryAfter,
		"1e300":                         maxRetryAfter,
		"NaN":                           maxRetryAfter,
	} {
		require.Equal(t, want, retryAfter(value, now), value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"", "3", "-1", "1e9", "NaN", "Inf", "Thu, 01 Jan 2026 12:00:30 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		wait := retryAfter(value, time.Now())
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, maxRetryAfter)
	})
}

func FuzzParseJobs(f *testing.F) {
	for _, s := range []string{"", "null", `{"id":"a"}`, `[{"id":"a","input":{}},null]`, `[{"id":"a"},{"id":`, `[`, `[]]`, `{"id":"a"}{"id":"b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		jobs, _ := parseJobs(body)
		for _, job := range jobs {
			require.NotEmpty(t, job.ID)
			again, err := protocol.ParseJob(job.Raw)
			require.NoError(t, err, "what the handler gets is a job")
			require.Equal(t, job.ID, again.ID)
		}
	})
}

func FuzzParseStops(f *testing.F) {
	for _, s := range []string{"", "{}", `{"jobsToStop":["a",1,null]}`, `{"jobsToStop":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ids, _ := parseStops(body)
		require.NotContains(t, ids, "")
	})
}
