package ready_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/ready"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, spec, fault string }{
		{"http", "http://127.0.0.1:8000/health", ""},
		{"https", "https://user@host/", ""},
		{"upper case", "HTTP://host", ""},
		{"tcp", "tcp:localhost:8000", ""},
		{"tcp, any host", "tcp::8000", ""},
		{"tcp, IPv6", "tcp:[::1]:8000", ""},
		{"command", "exec:nvidia-smi -L | grep H100", ""},
		{"empty", "", `"": want http://HOST/PATH, tcp:HOST:PORT or exec:COMMAND`},
		{"bare port", "8000", `want http://HOST/PATH`},
		{"another scheme", "grpc://host:1", `want http://HOST/PATH`},
		{"no host", "http:///health", "the URL names no host"},
		{"bad URL", "http://host:port/", `invalid port ":port" after host`},
		{"tcp without port", "tcp:localhost", "want tcp:HOST:PORT"},
		{"tcp as a URL", "tcp://localhost:80", "want tcp:HOST:PORT"},
		{"tcp, port zero", "tcp:localhost:0", `"0" is not a port`},
		{"tcp, large port", "tcp:localhost:65536", `"65536" is not a port`},
		{"tcp, named port", "tcp:localhost:http", `"http" is not a port`},
		{"no command", "exec: ", "it names no command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			probe, err := ready.Parse(tt.spec)
			if tt.fault != "" {
				require.ErrorContains(t, err, tt.fault)
				require.NotContains(t, err.Error(), "\n")
				return
			}
			require.NoError(t, err)
			require.Equal(t, strings.ToLower(tt.spec), strings.ToLower(probe.String()))
		})
	}
	t.Run("a password is not shown", func(t *testing.T) {
		probe, err := ready.Parse("http://user:secret@host/")
		require.NoError(t, err)
		require.NotContains(t, probe.String(), "secret")
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"http://h/", "tcp:h:1", "exec:true", "tcp:[", "http://[::1", ":"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		probe, err := ready.Parse(spec)
		require.Equal(t, err == nil, probe != nil)
		if err == nil {
			again, err := ready.Parse(probe.String())
			require.NoError(t, err)
			require.Equal(t, probe.String(), again.String())
		}
	})
}

func check(t *testing.T, spec string) error {
	t.Helper()
	probe, err := ready.Parse(spec)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return probe.Check(ctx)
}

func TestCheck_Web(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // which nobody may ask
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Location", "/500")
		w.WriteHeader(code)
		if code == http.StatusOK {
			_, _ = io.Copy(w, endless{}) // until the other side has seen enough
		}
	}))
	defer s.Close()
	for code, fault := range map[int]string{
		200: "", 204: "", 302: "", 399: "",
		400: "it answered 400 Bad Request", 401: "it answered 401", 503: "it answered 503 Service Unavailable",
	} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			err := check(t, fmt.Sprintf("%s/%d", s.URL, code))
			if fault == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, fault)
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		err := check(t, "http://user:secret@"+unused(t)+"/")
		require.ErrorContains(t, err, "connection refused")
		require.NotContains(t, err.Error(), "secret")
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// unused is an address where nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func TestCheck_TCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, check(t, "tcp:"+l.Addr().String()))
	require.ErrorContains(t, check(t, "tcp:"+unused(t)), "connection refused")
}

func TestCheck_Command(t *testing.T) {
	require.NoError(t, check(t, "exec:true | cat"))
	require.EqualError(t, check(t, "exec:echo no model; echo; exit 3"), "exit code 3: no model")
	require.EqualError(t, check(t, "exec:kill -TERM $$"), "killed by SIGTERM")
	t.Run("that hangs", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pid")
		probe, err := ready.Parse("exec:trap '' TERM; sleep 300 & echo $! >" + file + "; wait; sleep 300")
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			for !exists(file) {
				time.Sleep(time.Millisecond)
			}
			cancel(io.EOF)
		}()
		require.ErrorIs(t, probe.Check(ctx), io.EOF)
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		require.NoError(t, err)
		require.False(t, proc.Alive(pid))
	})
}

func exists(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Size() > 0
}
