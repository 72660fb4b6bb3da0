package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receivers stands in for the network.
type receivers func(attempt int, r *http.Request) (status int, err error)

type double struct {
	answer receivers
	start  time.Time
	mu     sync.Mutex
	calls  []string // "host after"
}

func (d *double) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	d.calls = append(d.calls, fmt.Sprint(r.URL.Host, " ", time.Since(d.start)))
	n := len(d.calls)
	d.mu.Unlock()
	status, err := d.answer(n, r)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: r,
		Header: http.Header{"Location": {"http://elsewhere/"}}, Body: io.NopCloser(strings.NewReader("thanks")),
	}, nil
}

func (d *double) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.calls...)
}

// log gathers lines; its users have ended when it is read.
type log struct{ bytes.Buffer }

func (l *log) warnings() []string {
	var lines []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, "level=WARN") {
			lines = append(lines, line)
		}
	}
	return lines
}

func newSender(o Options, answer receivers) (*Sender, *double, *log) {
	lines := &log{}
	o.Log = slog.New(slog.NewTextHandler(lines, nil))
	s := New(o)
	d := &double{answer: answer, start: time.Now()}
	s.client.Transport = d
	return s, d, lines
}

func message(t *testing.T, to string) Message {
	t.Helper()
	u, err := ParseURL(to)
	require.NoError(t, err)
	return Message{Job: "j1", URL: u, Body: []byte(`{"id":"j1"}`)}
}

func TestAttempts(t *testing.T) {
	always := func(status int) receivers { return func(int, *http.Request) (int, error) { return status, nil } }
	for name, row := range map[string]struct {
		answer   receivers
		attempts []string
		warning  string
	}{
		"200":            {always(200), []string{"hook 0s"}, ""},
		"204":            {always(204), []string{"hook 0s"}, ""},
		"always 500":     {always(500), []string{"hook 0s", "hook 5s", "hook 20s"}, "not delivered after 3 attempts: the receiver answered"},
		"a refusal":      {always(404), []string{"hook 0s", "hook 5s", "hook 20s"}, "not delivered after 3 attempts"},
		"a redirect":     {always(307), []string{"hook 0s", "hook 5s", "hook 20s"}, "not delivered after 3 attempts"},
		"the second":     {func(n int, _ *http.Request) (int, error) { return 500 - 300*(n/2), nil }, []string{"hook 0s", "hook 5s"}, ""},
		"no connection":  {func(int, *http.Request) (int, error) { return 0, errors.New("refused") }, []string{"hook 0s", "hook 5s", "hook 20s"}, "refused"},
		"silence":        {func(_ int, r *http.Request) (int, error) { <-r.Context().Done(); return 0, r.Context().Err() }, []string{"hook 0s", "hook 15s", "hook 40s"}, "deadline"},
		"not where told": {func(int, *http.Request) (int, error) { return 0, &refusedError{} }, []string{"hook 0s"}, "--allow-private-webhooks"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, lines := newSender(Options{}, row.answer)
				s.Send(message(t, "http://hook/a"))
				time.Sleep(time.Minute)
				s.Close()
				require.Equal(t, row.attempts, d.seen())
				if row.warning == "" {
					require.Empty(t, lines.warnings())
					return
				}
				require.Len(t, lines.warnings(), 1)
				require.Contains(t, lines.warnings()[0], row.warning)
			})
		})
	}
}

// A receiver that never answers keeps nobody else's webhooks.
func TestADeadReceiverIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, _ := newSender(Options{}, func(_ int, r *http.Request) (int, error) {
			if r.URL.Host == "dead" {
				<-r.Context().Done()
			}
			return 200, r.Context().Err()
		})
		for range 1000 {
			s.Send(message(t, "http://dead/"))
		}
		synctest.Wait()
		require.Len(t, d.seen(), 8, "one host has so many places")
		s.Send(message(t, "http://live/"))
		synctest.Wait()
		require.Equal(t, "live 0s", d.seen()[8])
		s.Close()
		require.Equal(t, 2*time.Second, time.Since(d.start), "a moment is left at the end")
		require.Empty(t, s.lanes)
	})
}

func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, _ := newSender(Options{Concurrent: 3, PerHost: 2}, func(int, *http.Request) (int, error) {
			time.Sleep(time.Second)
			return 200, nil
		})
		for n := range 5 {
			s.Send(message(t, fmt.Sprintf("http://h%d/", n)))
		}
		synctest.Wait()
		require.Len(t, d.seen(), 3)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, d.seen(), 5)
		s.Close()
	})
}

// What is too much is dropped, with one line until there is room again.
func TestBounds(t *testing.T) {
	for name, o := range map[string]Options{"of messages to one host": {MaxPending: 8}, "of bytes": {MaxBytes: 25}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, lines := newSender(o, func(int, *http.Request) (int, error) { time.Sleep(time.Second); return 200, nil })
				for range 2 {
					for range 5 {
						s.Send(message(t, "http://hook/"))
					}
					time.Sleep(2 * time.Second)
				}
				s.Close()
				require.Len(t, d.seen(), 4)
				require.Len(t, lines.warnings(), 2)
				require.Contains(t, lines.warnings()[0], "too many wait")
			})
		})
	}
}

// One receiver cannot fill all the room there is.
func TestADeadReceiverLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, lines := newSender(Options{MaxPending: 40}, func(_ int, r *http.Request) (int, error) {
			if r.URL.Host == "dead" {
				<-r.Context().Done()
			}
			return 200, r.Context().Err()
		})
		for range 100 {
			s.Send(message(t, "http://dead/"))
		}
		s.Send(message(t, "http://live/"))
		synctest.Wait()
		require.Contains(t, d.seen(), "live 0s")
		require.Equal(t, 10, s.pending, "a quarter of the room")
		s.Close()
		require.Contains(t, lines.warnings()[0], "too many wait for one receiver")
	})
}

// At the end, what is on its way gets there; what would be tried again later is dropped with one line.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, lines := newSender(Options{}, func(_ int, r *http.Request) (int, error) {
			if r.URL.Host == "broken" {
				return 500, nil
			}
			time.Sleep(time.Second)
			return 200, nil
		})
		for range 3 {
			s.Send(message(t, "http://broken/"))
		}
		s.Send(message(t, "http://slow/"))
		synctest.Wait()
		s.Close()
		s.Close()
		require.Equal(t, time.Second, time.Since(d.start))
		require.Len(t, d.seen(), 4)
		require.Len(t, lines.warnings(), 1)
		require.Contains(t, lines.warnings()[0], "webhooks=3")
		s.Send(message(t, "http://slow/"))
		require.Len(t, d.seen(), 4)
	})
}

func TestRequest(t *testing.T) {
	s, _, _ := newSender(Options{}, func(_ int, r *http.Request) (int, error) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"j1"}`, string(body))
		require.Equal(t, http.MethodPost, r.Method)
		require.Equal(t, "http://user:pass@hook/a?b=c", r.URL.String())
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		require.Equal(t, "Go-http-client/2.0", r.Header.Get("User-Agent"))
		require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, r.Header.Get("Traceparent"))
		require.Equal(t, "Basic dXNlcjpwYXNz", r.Header.Get("Authorization"))
		return 200, nil
	})
	s.Send(message(t, "http://user:pass@hook/a?b=c"))
	s.Close()
}

func TestParseURL(t *testing.T) {
	for text, problem := range map[string]string{
		"https://example.com/a?b=c": "", "http://127.0.0.1:1/": "", "HTTP://EXAMPLE.com": "",
		"file:///etc/passwd": `not "file"`, "gopher://x/": `not "gopher"`, "/relative": `not ""`, "//host/": `not ""`,
		"http://": "names no host", "http://:80/": "names no host", "http://a b/": "is not a URL",
	} {
		u, err := ParseURL(text)
		if problem == "" {
			require.NoError(t, err, text)
			require.IsType(t, &url.URL{}, u)
			continue
		}
		require.ErrorContains(t, err, problem, text)
	}
}
