package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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
			err := c.Done(context.Background(), "j", protocol.NewBody([]byte("{}")), false)
			require.Error(t, err)
			require.NotErrorAs(t, err, &reset)
		})
	}
}

// A body that lies in a file is whole again after a connection that was cut in the middle of it.
func TestSend_LargeBodyIsSentAgain(t *testing.T) {
	const size = 8 << 20
	path := filepath.Join(t.TempDir(), "output")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("01234567"), size/8), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	outcome := protocol.Outcome{Spool: spool{file, size}, Error: "x"}
	want := `{"output":` + strings.Repeat("01234567", size/8) + `,"error":"x"}`

	for _, cut := range []int64{0, 1, 1 << 20, int64(len(want)) - 1} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			var calls atomic.Int64
			bodies, lengths := make(chan string, 1), make(chan int64, 1)
			c := against(t, func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 {
					_, _ = io.CopyN(io.Discard, r.Body, cut)
					conn, _, err := http.NewResponseController(w).Hijack()
					if err == nil {
						_ = conn.(*net.TCPConn).SetLinger(0)
						_ = conn.Close()
					}
					return
				}
				body, _ := io.ReadAll(r.Body)
				bodies <- string(body)
				lengths <- r.ContentLength
			})
			body := outcome.Body(false)
			var reset *protocol.ResetError
			require.ErrorAs(t, c.Done(t.Context(), "j", body, false), &reset)
			require.NoError(t, c.Done(t.Context(), "j", body, false))
			if got := <-bodies; got != want {
				require.FailNow(t, "the second body is another one", "%d bytes, want %d", len(got), len(want))
			}
			require.Equal(t, int64(len(want)), <-lengths)
		})
	}
}

type spool struct {
	*os.File
	size int64
}

func (s spool) Size() int64 { return s.size }
