package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// A connection that is cut in the middle of a post can be told from a platform that is not there.
func TestDone_CutConnection(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil { // HTTP/2: only the stream is reset
			panic(http.ErrAbortHandler)
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		start  func(*httptest.Server)
	}{
		"reset before the body is read": {cut, (*httptest.Server).Start},
		"closed after the body is read": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}, (*httptest.Server).Start},
		"HTTP/2, the stream is reset": {cut, (*httptest.Server).StartTLS},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(tt.handle)
			server.EnableHTTP2 = true
			tt.start(server)
			t.Cleanup(server.Close)
			c := New(Config{URLs: protocol.Templates{PostOutput: server.URL + "/job-done/$ID?"}})
			t.Cleanup(c.Close)
			if cert := server.Certificate(); cert != nil {
				roots := x509.NewCertPool()
				roots.AddCert(cert)
				c.calls.TLSClientConfig = &tls.Config{RootCAs: roots}
			}
			var reset *protocol.ResetError
			require.ErrorAs(t, c.Done(context.Background(), "j", protocol.NewBody(bytes.Repeat([]byte("x"), 4<<20)), false), &reset)
			require.Equal(t, "job-done", reset.Call)

			server.Close()
			c.Close()
			err := c.Done(context.Background(), "j", []byte("{}"), false)
			require.Error(t, err)
			require.NotErrorAs(t, err, &reset)
		})
	}
}
