package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// hosted is a client of a server that speaks HTTP/2 over TLS, as the hosted API does, over a network that can fail.
// It holds the takes of a busy worker, and answers all others with a job.
func hosted(t *testing.T) (c *Client, network *apidouble.Blackhole, held chan struct{}) {
	t.Helper()
	held = make(chan struct{}, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
			return
		}
		if r.URL.Query().Get("job_in_progress") == "1" {
			held <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"id":"a","input":{}}`)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)

	network = &apidouble.Blackhole{}
	base := server.URL + "/v2/ep"
	c = New(Config{
		URLs:     protocol.Templates{GetJob: base + "/job-take/$ID?", PostOutput: base + "/job-done/$ID?", Ping: base + "/ping?"},
		WorkerID: "w1", Dial: network.Dial,
	})
	t.Cleanup(c.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	for _, transport := range []*http.Transport{c.calls, c.heartbeat} {
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	return c, network, held
}

func requireTake(t *testing.T, c *Client) {
	t.Helper()
	jobs, err := c.Take(context.Background(), 1, false)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
}

// All calls share one connection. If that goes silent, a call must not wait for its own deadline, and the next one must go
// out on a fresh connection.
func TestClient_HTTP2ConnectionThatDiesSilently(t *testing.T) {
	ctx := context.Background()
	poll := func(c *Client) error { _, err := c.Take(ctx, 1, true); return err }
	for name, row := range map[string]struct {
		fail func(*apidouble.Blackhole)
		call func(*Client) error
	}{
		"a poll, nothing comes through": {(*apidouble.Blackhole).Swallow, poll},
		"a poll, nobody reads":          {(*apidouble.Blackhole).Stall, poll},
		"a post, nobody reads": {(*apidouble.Blackhole).Stall, func(c *Client) error {
			return c.Done(ctx, "a", protocol.NewBody(bytes.Repeat([]byte("x"), 8<<20)), false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, network, held := hosted(t)
			require.Less(t, c.calls.HTTP2.SendPingTimeout+c.calls.HTTP2.PingTimeout, pollLimit/2)
			c.calls.HTTP2.SendPingTimeout = 50 * time.Millisecond
			c.calls.HTTP2.PingTimeout = 50 * time.Millisecond
			c.calls.HTTP2.WriteByteTimeout = 50 * time.Millisecond
			requireTake(t, c)

			var polls sync.WaitGroup
			polls.Go(func() { _ = poll(c) })
			<-held
			row.fail(network)
			require.Error(t, row.call(c))
			polls.Wait()
			requireTake(t, c)
		})
	}
}

// A worker that was frozen does not wait until it is found out that nobody is there any more.
func TestRenew_CutsWhatMayBeDead(t *testing.T) {
	c, network, held := hosted(t)
	require.NoError(t, c.Ping(context.Background(), nil))
	requireTake(t, c)
	poll := make(chan error, 1)
	go func() {
		_, err := c.Take(context.Background(), 1, true)
		poll <- err
	}()
	<-held
	network.Swallow()

	cut := c.Renew()
	require.NoError(t, c.Ping(context.Background(), nil))
	require.Empty(t, poll, "it may still read what has arrived")
	cut()
	require.Error(t, <-poll)
	requireTake(t, c)
}
