package metrics

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAddress(t *testing.T) {
	for _, tt := range []struct{ text, want, err string }{
		{":9090", "127.0.0.1:9090", ""},
		{"9090", "127.0.0.1:9090", ""},
		{"0.0.0.0:9090", "0.0.0.0:9090", ""},
		{"[::1]:0", "[::1]:0", ""},
		{"localhost:1", "localhost:1", ""},
		{"", "", `"" is not a port`},
		{"here", "", `"here" is not a port`},
		{"host:http", "", `"http" is not a port`},
		{":70000", "", `"70000" is not a port`},
		{":+1", "", `"+1" is not a port`},
		{"::1", "", "want HOST:PORT"},
		{"a:b:c", "", "want HOST:PORT"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := Address(tt.text)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func serving(t *testing.T, profiles bool) *Server {
	t.Helper()
	s, err := Serve("127.0.0.1:0", New(of(&State{Phase: "ready"})), profiles, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, s *Server, path, host string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, nil)
	require.NoError(t, err)
	if host != "" {
		req.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	s := serving(t, false)
	for path, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200, "/status.json": 200, "/": 404, "/debug/pprof/": 404,
	} {
		code, _ := get(t, s, path, "")
		require.Equal(t, want, code, path)
	}
	for host, want := range map[string]int{"localhost": 200, "localhost:9": 200, "127.0.0.1": 200, "[::1]:80": 200, "evil.example": 403, "evil.example:80": 403} {
		code, _ := get(t, s, "/status.json", host)
		require.Equal(t, want, code, host)
	}
}

func TestServe_ShowsProfilesWhereAsked(t *testing.T) {
	s := serving(t, true)
	code, text := get(t, s, "/debug/pprof/goroutine?debug=1", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "goroutine profile")
}

func TestServe_SaysThatAPortIsTaken(t *testing.T) {
	s := serving(t, false)
	_, err := Serve(s.Addr(), New(of(&State{})), false, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "address already in use")
}

// Callers that send nothing, or read nothing, hold only what they have, and lose it in the end.
func TestServe_OutlivesCallersThatHang(t *testing.T) {
	s := serving(t, false)
	var silent []net.Conn
	for range maxConns - 1 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: "))
		require.NoError(t, err)
		silent = append(silent, conn)
	}
	code, _ := get(t, s, "/healthz", "")
	require.Equal(t, http.StatusOK, code, "beside them")
	for _, conn := range silent {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err := io.Copy(io.Discard, conn)
		require.NoError(t, err, "cut off by the server")
	}
}

// pipes is a listener without a network, whose callers wait in the order in which they came.
type pipes struct {
	net.Listener // for its address
	callers      chan net.Conn
	closed       chan struct{}
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return &pipes{Listener: listener, callers: make(chan net.Conn), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.callers:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return p.Listener.Close()
}

// call sends something once it is somebody's turn, and returns what is answered before the connection is closed.
func (p *pipes) call(text string) string {
	mine, theirs := net.Pipe()
	defer mine.Close()
	p.callers <- theirs
	_, _ = io.WriteString(mine, text)
	answer, _ := io.ReadAll(mine)
	return string(answer)
}

// A probe comes through behind a crowd that never comes to an end, in less time than it takes to call a worker dead.
func TestServe_CrowdOfHalfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes(t)
		s := serve(listener, New(of(&State{Phase: "ready"})), false, slog.New(slog.DiscardHandler))
		var crowd sync.WaitGroup
		for range 900 {
			crowd.Go(func() { listener.call("GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ") })
		}
		synctest.Wait()
		start := time.Now()
		answer := listener.call("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		took := time.Since(start)
		crowd.Wait()
		s.Close()
		require.Contains(t, answer, "200 OK")
		require.Less(t, took, 10*time.Second)
	})
}

func TestServe_RefusesLargeHeaders(t *testing.T) {
	s := serving(t, false)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Addr())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	if err == nil {
		var status string
		status, err = bufio.NewReader(conn).ReadString('\n')
		require.Contains(t, status, "431")
	}
	require.NoError(t, err)
}
