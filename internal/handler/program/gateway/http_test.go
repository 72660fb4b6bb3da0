package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

const patience = 30 * time.Second

// site is a gateway behind its port.
type site struct {
	*Gateway
	t      *testing.T
	client *http.Client
}

func open(t *testing.T, env map[string]string) *site {
	t.Helper()
	g := New(Options{Lookup: environment(env), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), TakeHold: 50 * time.Millisecond})
	require.NoError(t, g.Open())
	g.Serve()
	s := &site{g, t, &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		g.Close()
	})
	return s
}

// call makes a call and returns the status and the answer.
func (s *site) call(method, path, body string, header ...string) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			request.Host = header[i+1]
		}
	}
	response, err := s.client.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response.StatusCode, string(text)
}

// taken gives the gateway a job and takes it.
func (s *site) taken(id string) *handled {
	s.t.Helper()
	h := s.waiting(id)
	status, body := s.call("GET", "/v2/ep/job-take/w?gpu=L4&job_in_progress=1", "")
	require.Equal(s.t, http.StatusOK, status, body)
	require.Equal(s.t, string(raw(id)), body)
	return h
}

func (s *site) waiting(id string) *handled {
	s.t.Helper()
	ctx, cancel := context.WithCancelCause(s.t.Context())
	h := &handled{sink: &sink{}, cancel: cancel, over: make(chan struct{})}
	go func() {
		defer close(h.over)
		h.out, h.err = s.Handle(ctx, protocol.Job{ID: id, Raw: raw(id)}, h.sink)
	}()
	require.Eventually(s.t, func() bool { _, n := s.ahead(); return n > 0 }, patience, time.Millisecond)
	return h
}

func TestWhoMayCall(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".runpod"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".runpod", "config.toml"), []byte("[default]\napi_key = \"stored\"\n"), 0o600))
	locked, free := map[string]string{"RUNPOD_AI_API_KEY": "key", "HOME": home}, map[string]string{}
	for _, tt := range []struct {
		name   string
		env    map[string]string
		header []string
		status int
	}{
		{"the key", locked, []string{"Authorization", "key"}, http.StatusNoContent},
		{"as a token", locked, []string{"Authorization", "Bearer key"}, http.StatusNoContent},
		{"the stored key, which the SDK prefers", locked, []string{"Authorization", "stored"}, http.StatusNoContent},
		{"a wrong key", locked, []string{"Authorization", "wrong"}, http.StatusUnauthorized},
		{"no key", locked, nil, http.StatusUnauthorized},
		{"none is asked for", free, nil, http.StatusNoContent},
		{"a key is no harm", free, []string{"Authorization", "any"}, http.StatusNoContent},
		{"a web page", free, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{"a picture in a web page", free, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a name that leads here", free, []string{"Host", "evil.example"}, http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t, tt.env)
			status, body := s.call("GET", "/v2/ep/job-take/w?gpu=L4&job_in_progress=0", "", tt.header...)
			require.Equal(t, tt.status, status, body)
			asked := false
			select {
			case <-s.Asked():
				asked = true
			default:
			}
			require.Equal(t, tt.status == http.StatusNoContent, asked)
		})
	}
}

func TestCallsOverHTTP(t *testing.T) {
	s := open(t, nil)
	t.Run("batch", func(t *testing.T) {
		a := s.waiting("a")
		status, body := s.call("GET", "/v2/ep/job-take-batch/$RUNPOD_POD_ID&batch_size=3&job_in_progress=0", "")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, "["+string(raw("a"))+"]", body)
		status, _ = s.call("POST", "/v2/ep/job-stream/w/a?isStream=false", `{"output": 1.50}`)
		require.Equal(t, http.StatusOK, status)
		status, _ = s.call("POST", "/v2/ep/job-done/w/a?gpu=L4&isStream=true", `{"output": [ 1.50 ]}`, "Content-Type", "application/x-www-form-urlencoded")
		require.Equal(t, http.StatusOK, status)
		<-a.over
		require.NoError(t, a.err)
		require.Equal(t, protocol.Outcome{Output: []byte(`[ 1.50 ]`), Stream: true}, a.out)
		require.Equal(t, []string{"1.50"}, a.sink.chunks)
		status, _ = s.call("POST", "/v2/ep/job-done/w/a?isStream=true", `{}`)
		require.Equal(t, http.StatusNotFound, status, "a second time")
	})
	t.Run("a forgotten job", func(t *testing.T) {
		a := s.taken("a")
		for over := false; !over; {
			status, _ := s.call("GET", "/v2/ep/job-take/w?job_in_progress=0", "", "User-Agent", "RunPod-Python-SDK/1.12.0 (Linux)")
			require.Equal(t, http.StatusNoContent, status)
			select {
			case <-a.over:
				over = true
			default:
			}
		}
		require.ErrorIs(t, a.err, errForgotten)
	})
	t.Run("a large job and a large result", func(t *testing.T) {
		large := `"` + strings.Repeat("x", 30<<20) + `"`
		a := s.taken("a")
		status, body := s.call("POST", "/job-done/w/a", `{"output":`+large+`}`)
		require.Equal(t, http.StatusOK, status, body)
		<-a.over
		require.Len(t, a.out.Output, len(large))
	})
}

// Nothing that the program posts harms more than its own job.
func TestHostileCalls(t *testing.T) {
	s := open(t, nil)
	for _, tt := range []struct {
		name, path, body string
		status           int
		fails            string // the job ends with this
	}{
		{"garbage", "/job-done/w/a", "\x00\xff garbage", http.StatusBadRequest, refusedResult},
		{"no object", "/job-done/w/a", `[1]`, http.StatusBadRequest, refusedResult},
		{"an error that is no text", "/job-done/w/a", `{"error":{"code":1}}`, http.StatusBadRequest, refusedResult},
		{"NaN", "/job-done/w/a", `{"output":NaN}`, http.StatusBadRequest, refusedResult},
		{"far too large", "/job-done/w/a", `{"output":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusBadRequest, refusedResult},
		{"deep", "/job-done/w/a", `{"output":` + strings.Repeat("[", 100_000), http.StatusBadRequest, refusedResult},
		{"an item that is no JSON", "/job-stream/w/a", `{"output":NaN}`, http.StatusBadRequest, ""},
		{"an item without output", "/job-stream/w/a", `{}`, http.StatusBadRequest, ""},
		{"another job", "/job-done/w/b", `{"output":1}`, http.StatusNotFound, ""},
		{"garbage for another job", "/job-done/w/b", `garbage`, http.StatusBadRequest, ""},
		{"an item for another job", "/job-stream/w/b", `{"output":1}`, http.StatusNotFound, ""},
		{"no such call", "/job-eat/w/a", `{}`, http.StatusNotFound, ""},
		{"a path full of dots", "/../../job-done/w/..", `{}`, http.StatusNotFound, ""},
		{"a wrong method", "/job-take/w", `{}`, http.StatusMethodNotAllowed, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.t = t
			a := s.taken("a")
			status, body := s.call("POST", tt.path, tt.body)
			require.Equal(t, tt.status, status, body)
			if tt.fails == "" {
				status, body = s.call("POST", "/job-done/w/a", `{"output":"well"}`)
				require.Equal(t, http.StatusOK, status, body)
			}
			<-a.over
			require.NoError(t, a.err)
			require.Equal(t, tt.fails, a.out.Error)
			require.Equal(t, tt.fails == "", string(a.out.Output) == `"well"`)
		})
	}
}

// Who asks for a job and does not read it has not taken it.
func TestSlowReader(t *testing.T) {
	g := New(Options{
		Lookup: environment(nil), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		TakeHold: 50 * time.Millisecond, StopHold: 50 * time.Millisecond, ReadTime: 200 * time.Millisecond,
	})
	require.NoError(t, g.Open())
	defer g.Close()
	large := protocol.Job{ID: "a", Raw: []byte(`{"id":"a","input":"` + strings.Repeat("x", 30<<20) + `"}`)}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	over := make(chan error)
	go func() {
		_, err := g.Handle(ctx, large, &sink{})
		over <- err
	}()
	require.Eventually(t, func() bool { _, n := g.ahead(); return n > 0 }, patience, time.Millisecond)
	slow, err := net.Dial("tcp", g.addr)
	require.NoError(t, err)
	defer slow.Close()
	_, err = slow.Write([]byte("GET /job-take/w HTTP/1.1\r\nHost: " + g.addr + "\r\n\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		j := g.jobs["a"]
		return j != nil && !j.since.IsZero() && !j.taken && len(g.queue) == 1
	}, patience, time.Millisecond, "it did not go back")
	cancel(stopped)
	require.ErrorIs(t, <-over, stopped, "nobody has to be asked for it")
}

// Who breaks off in the middle of a post has not posted anything.
func TestHalfAPost(t *testing.T) {
	s := open(t, nil)
	a := s.taken("a")
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	_, err = c.Write([]byte("POST /job-done/w/a HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Length: 1000\r\n\r\n{\"output\":"))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	status, _ := s.call("POST", "/job-done/w/a", `{"output":"whole"}`)
	require.Equal(t, http.StatusOK, status)
	<-a.over
	require.Equal(t, `"whole"`, string(a.out.Output))
}

// A program that has ended owes what it had; calls that hang do not hold up the end.
func TestClose(t *testing.T) {
	s := open(t, nil)
	a := s.taken("a")
	b := s.waiting("b")
	hanging, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	defer hanging.Close()
	_, err = hanging.Write([]byte("POST /job-done/w/a HTTP/1.1\r\nHost: " + s.addr + "\r\nContent-Length: 1000\r\n\r\n{"))
	require.NoError(t, err)
	var closing sync.WaitGroup
	for range 2 {
		closing.Go(s.Close)
	}
	closing.Wait()
	require.False(t, s.Leaves())
	for _, h := range []*handled{a, b} {
		<-h.over
		require.ErrorIs(t, h.err, ErrClosed)
	}
	require.NotErrorIs(t, a.err, protocol.ErrNotBegun)
	require.ErrorIs(t, b.err, protocol.ErrNotBegun, "it had no part in the end of the program")
	_, err = s.Handle(t.Context(), protocol.Job{ID: "c"}, &sink{})
	require.ErrorIs(t, err, ErrClosed)

	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	_, err = s.Handle(ctx, protocol.Job{ID: "c"}, &sink{})
	require.ErrorIs(t, err, ErrClosed)
}
