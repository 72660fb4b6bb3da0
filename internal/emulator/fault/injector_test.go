package fault

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func arm(t *testing.T, rules string) *Injector {
	t.Helper()
	plan, err := Parse([]byte(`{"seed":1,"rules":[` + rules + `]}`))
	require.NoError(t, err)
	i := New(nil)
	i.Add(plan)
	return i
}

// served is a server whose every call goes through the rules; acted counts what its handler has done.
func served(t *testing.T, i *Injector) (url string, acted *atomic.Int32) {
	t.Helper()
	acted = &atomic.Int32{}
	srv := httptest.NewServer(i.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		acted.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"j1"}`)
	})))
	t.Cleanup(srv.Close)
	return srv.URL, acted
}

func TestActions(t *testing.T) {
	for name, row := range map[string]struct {
		rule              string
		status            int
		body, contentType string
		retryAfter        string
		broken            string // which step fails: the call, or reading its body
		acted             int32
	}{
		"status":            {rule: `{"status":503}`, status: 503, body: `{"status":503,"title":"Service Unavailable","detail":"a fault that was asked for"}`, contentType: "application/json"},
		"a page of a proxy": {rule: `{"status":502,"body":"<html>","contentType":"text/html"}`, status: 502, body: "<html>", contentType: "text/html"},
		"429":               {rule: `{"status":429,"retryAfter":3}`, status: 429, body: `{"status":429,"title":"Too Many Requests","detail":"a fault that was asked for"}`, contentType: "application/json", retryAfter: "3"},
		"half of a JSON":    {rule: `{"status":200,"body":"{\"id\":"}`, status: 200, body: `{"id":`, contentType: "application/json"},
		"wrong type":        {rule: `{"contentType":"text/plain"}`, status: 200, body: `{"id":"j1"}`, contentType: "text/plain", acted: 1},
		"reset before":      {rule: `{"reset":"before"}`, broken: "call"},
		"lost reply":        {rule: `{"reset":"after"}`, broken: "call", acted: 1},
		"truncated":         {rule: `{"truncate":4}`, status: 200, body: `{"id`, contentType: "application/json", broken: "body", acted: 1},
		"truncated to none": {rule: `{"truncate":0}`, status: 200, contentType: "application/json", broken: "body", acted: 1},
		"delayed":           {rule: `{"delay":"1ms"}`, status: 200, body: `{"id":"j1"}`, contentType: "application/json", acted: 1},
	} {
		t.Run(name, func(t *testing.T) {
			url, acted := served(t, arm(t, row.rule))
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			res, err := client.Post(url+"/run", "application/json", strings.NewReader(strings.Repeat("x", 1<<20)))
			if row.broken == "call" {
				require.Error(t, err)
				require.Equal(t, row.acted, acted.Load())
				return
			}
			require.NoError(t, err)
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			require.Equal(t, row.broken == "body", err != nil)
			require.Equal(t, row.status, res.StatusCode)
			require.Equal(t, row.body, string(body))
			require.Equal(t, row.contentType, res.Header.Get("Content-Type"))
			require.Equal(t, row.retryAfter, res.Header.Get("Retry-After"))
			require.Equal(t, row.acted, acted.Load())
		})
	}
}

// outcomes is what n calls of one path get: a digit for each status' first.
func outcomes(i *Injector, path string, n int) string {
	var b strings.Builder
	h := i.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for range n {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Fprint(&b, rec.Code/100)
	}
	return b.String()
}

func TestMatching(t *testing.T) {
	for rule, want := range map[string][2]string{ // outcomes of job-done/w1/j1 and of status/j1
		`{"status":500}`:                                    {"555", "555"},
		`{"status":500,"route":"job-done"}`:                 {"555", "222"},
		`{"status":500,"worker":"w1"}`:                      {"555", "222"},
		`{"status":500,"worker":"w2"}`:                      {"222", "222"},
		`{"status":500,"job":"j1"}`:                         {"555", "555"},
		`{"status":500,"job":"j1","route":"status"}`:        {"222", "555"},
		`{"status":500,"times":2}`:                          {"552", "222"},
		`{"status":400,"times":1},{"status":500,"times":1}`: {"452", "222"},
		`{"duplicate":true}`:                                {"222", "222"},
	} {
		i := arm(t, rule)
		require.Equal(t, want[0], outcomes(i, "/v2/local/job-done/w1/j1", 3), rule)
		require.Equal(t, want[1], outcomes(i, "/v2/local/status/j1", 3), rule)
		require.Equal(t, "222", outcomes(i, "/_emulator/faults", 3), rule)
	}
}

// The same seed has the same luck, whatever other rules there are.
func TestSeed(t *testing.T) {
	const rule = `{"route":"run","probability":0.3,"status":500}`
	first := outcomes(arm(t, rule), "/run", 200)
	require.Equal(t, first, outcomes(arm(t, rule), "/run", 200))
	require.Equal(t, first, outcomes(arm(t, rule+`,{"probability":0.5,"status":400,"route":"status"}`), "/run", 200))
	require.InDelta(t, 60, strings.Count(first, "5"), 25)
	other, err := Parse([]byte(`{"seed":2,"rules":[` + rule + `]}`))
	require.NoError(t, err)
	i := New(nil)
	i.Add(other)
	require.NotEqual(t, first, outcomes(i, "/run", 200))
}

func TestClear(t *testing.T) {
	i := arm(t, `{"status":500},{"status":400}`)
	require.Equal(t, 2, i.Clear())
	require.Zero(t, i.Clear())
	require.Equal(t, "222", outcomes(i, "/run", 3))
}

// A delay ends with its caller, and with the emulator.
func TestDelayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan struct{})
		i := arm(t, `{"delay":"1h"}`)
		i.done = done
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(done) })
		require.Equal(t, "2", outcomes(i, "/run", 1))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func BenchmarkUnused(b *testing.B) {
	h := New(nil).Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v2/local/status/j1", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(rec, req)
	}
}
