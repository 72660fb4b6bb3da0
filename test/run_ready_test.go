package test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// awaitLoaded waits until the program has asked the worker for its jobs, so that only a probe can hold it back.
func (w *worker) awaitLoaded(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return len(w.stdout.lines()) > 0 }, "the program has not called start()")
}

// No job passes before what --ready names is there.
func TestRunWaitsForReadiness(t *testing.T) {
	t.Parallel()
	for name, probe := range map[string]func(t *testing.T) (spec string, open func()){
		"URL": func(t *testing.T) (string, func()) {
			var up atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if !up.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			t.Cleanup(server.Close)
			return server.URL + "/health", func() { up.Store(true) }
		},
		"tcp": func(t *testing.T) (string, func()) {
			address := freeAddress(t)
			return "tcp:" + address, func() {
				l, err := net.Listen("tcp", address)
				require.NoError(t, err)
				t.Cleanup(func() { l.Close() })
			}
		},
		"exec": func(t *testing.T) (string, func()) {
			file := filepath.Join(t.TempDir(), "up")
			return "exec:test -e " + file, func() { require.NoError(t, os.WriteFile(file, nil, 0o600)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, open := probe(t)
			w := runThrough(t, []string{"--ready", spec}, nil, "sync.py")
			w.Offer(emptyJob)
			w.awaitLoaded(t)
			time.Sleep(300 * time.Millisecond) // a few looks
			require.Empty(t, w.Calls(apidouble.Take))
			open()
			w.result(t, "j1")
		})
	}
}

// HB-06: what never gets ready ends the worker, with the reason.
func TestHB06NeverReady(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env, flags []string
		program    []string
		says       string
	}{
		"flag":     {nil, []string{"--ready-timeout", "1s"}, []string{"sleep", "3600"}, "it was not ready after 1s"},
		"variable": {[]string{"RUNPOD_INIT_TIMEOUT=1"}, nil, []string{"sleep", "3600"}, "it was not ready after 1s"},
		"a probe": {
			nil,
			[]string{"--ready-timeout", "3s", "--ready", "exec:echo no model here; false"},
			[]string{python(t), "-u", handler(t, "sync.py")},
			"no model here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runCommand(t, apidouble.New(t), row.env, append(append(row.flags, "--"), row.program...)...)
			require.Equal(t, 1, w.wait(t), w.stderr)
			require.Contains(t, w.stderr.String(), row.says)
			require.Empty(t, w.Calls(apidouble.Take))
		})
	}
}

// HB-06: heartbeats begin when the handler is loaded, or with --ping-early before it is.
func TestHB06HeartbeatWhileLoading(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"--ping-early": true, "by default": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			load := filepath.Join(t.TempDir(), "load")
			script := `while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"`
			w := runCommand(t, apidouble.New(t), with(checked, "RUNPOD_PING_INTERVAL=1000"),
				"--ping-early="+strconv.FormatBool(early), "--", "sh", "-c", script, load, python(t), "-u", handler(t, "sync.py"))
			if early {
				eventually(t, func() bool { return len(w.Calls(apidouble.Ping)) >= 2 }, "no heartbeat")
			} else {
				w.awaitWord(t, "All fitness checks passed.")
				time.Sleep(1500 * time.Millisecond)
				require.Empty(t, w.Calls(apidouble.Ping))
			}
			require.Empty(t, w.Calls(apidouble.Take))
			require.NoError(t, os.WriteFile(load, nil, 0o600))
			w.Offer(emptyJob)
			w.result(t, "j1")
			eventually(t, func() bool { return len(w.Calls(apidouble.Ping)) > 0 }, "no heartbeat")
		})
	}
}

// What was ready and is so no longer costs the program its life: it is started anew and gets no job before all is well.
func TestRunLosesReadiness(t *testing.T) {
	t.Parallel()
	up := filepath.Join(t.TempDir(), "up")
	open := func() { require.NoError(t, os.WriteFile(up, nil, 0o600)) }
	open()
	w := runThrough(t, []string{"--ready", "exec:test -e " + up}, nil, "sync.py")
	w.awaitTake(t)
	require.NoError(t, os.Remove(up))
	// It takes three failures, ten seconds apart.
	require.Eventually(t, func() bool { return len(w.stdout.lines()) > 1 }, 3*patience, 50*time.Millisecond, "not started again")
	open()
	w.Offer(emptyJob)
	w.result(t, "j1")
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
}
