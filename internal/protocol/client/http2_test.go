package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// blackhole is a network that can swallow what is sent on the connections made so far.
type blackhole struct {
	mu    sync.Mutex
	conns []*swallowed
}

type swallowed struct {
	net.Conn
	silent chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (b *blackhole) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s := &swallowed{Conn: conn, silent: make(chan struct{}), closed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, s)
	return s, nil
}

func (b *blackhole) swallow() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.conns {
		close(s.silent)
	}
	b.conns = nil
}

func (s *swallowed) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	select {
	case <-s.silent:
		<-s.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (s *swallowed) Write(p []byte) (int, error) {
	select {
	case <-s.silent:
		return len(p), nil
	default:
		return s.Conn.Write(p)
	}
}

func (s *swallowed) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// The hosted API speaks HTTP/2, where all calls share one connection. If that goes silent, a call must not wait
// for the deadline of a long poll, and the next one must go out on a fresh connection.
func TestClient_HTTP2ConnectionThatDiesSilently(t *testing.T) {
	var protos sync.Map
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protos.Store(r.Proto, true)
		if r.URL.Query().Get("job_in_progress") == "1" { // a poll that is held
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"id":"a","input":{}}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()

	network := &blackhole{}
	c := New(Config{URLs: protocol.Templates{GetJob: server.URL + "/v2/ep/job-take/$ID?"}, WorkerID: "w1", Dial: network.dial})
	defer c.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c.calls.TLSClientConfig = &tls.Config{RootCAs: roots}
	require.Less(t, c.calls.HTTP2.SendPingTimeout+c.calls.HTTP2.PingTimeout, pollLimit/2)
	c.calls.HTTP2.SendPingTimeout = 50 * time.Millisecond
	c.calls.HTTP2.PingTimeout = 50 * time.Millisecond

	jobs, err := c.Take(context.Background(), 1, false)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	held := make(chan error, 1)
	go func() {
		_, err := c.Take(context.Background(), 1, true)
		held <- err
	}()
	time.Sleep(20 * time.Millisecond) // the poll is open, most likely; if not, it meets a dead connection
	network.swallow()
	require.Error(t, <-held)
	jobs, err = c.Take(context.Background(), 1, false)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	_, spoken := protos.Load("HTTP/2.0")
	require.True(t, spoken)
}
