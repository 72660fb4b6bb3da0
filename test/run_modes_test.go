package test

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// A realtime worker takes jobs from requests to its own port. It runs no checks, as ever, and has a heartbeat.
func TestRunOfARealtimeWorker(t *testing.T) {
	t.Parallel()
	address, g := freeAddress(t), newGates(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	env := with(checked, insatiable, "RUNPOD_REALTIME_PORT="+port, "RUNPOD_PING_INTERVAL=1000")
	w := runThrough(t, doors["shim"], env, "gate.py")
	eventually(t, func() bool { return strings.Contains(w.stderr.String(), "/ep/realtime") }, "it does not listen")
	require.NotContains(t, w.stderr.String(), "fitness")

	type answer struct {
		status int
		body   string
		err    error
	}
	post := func(job string) answer {
		resp, err := httpClient.Post("http://"+address+"/ep/realtime", "application/json", strings.NewReader(job))
		if err != nil {
			return answer{err: err}
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return answer{resp.StatusCode, string(body), err}
	}
	answers := make(chan answer, 1)
	go func() { answers <- post(g.job("r1")) }()
	eventually(t, func() bool {
		pings := w.Calls(apidouble.Ping)
		return len(pings) > 0 && pings[len(pings)-1].Query.Get("job_id") == "r1"
	}, "no heartbeat names the job")
	g.open("r1")
	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{"output":"r1"}`, got.body)

	refused := post(`{"id":"r2"}`)
	require.NoError(t, refused.err)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Empty(t, w.Calls(apidouble.Take))
}

// The program of a load-balanced endpoint serves its own port. It is started behind the early checks, gets no jobs and its end is the
// worker's.
func TestRunOfALoadBalancedWorker(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	env := with(checked, "PORT="+port)
	w := runCommand(t, apidouble.New(t), env, "--mode", "lb", "--ready", "http://"+address+"/",
		"--", "sh", "-c", `exec "$0" -m http.server --bind 127.0.0.1 "$PORT"`, python(t))
	w.awaitWord(t, "The program is ready.")
	require.Contains(t, w.stderr.String(), "Memory check passed")
	resp, err := httpClient.Get("http://" + address + "/")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)

	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
	_, err = net.Dial("tcp", address)
	require.Error(t, err, "the program has outlived the worker")
	require.Empty(t, w.Calls(apidouble.Take))
}

func TestRunOfALoadBalancedWorkerThatEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env     []string
		flags   []string
		program string
		code    int
		says    string
	}{
		"by itself":     {nil, nil, "exit 0", 0, "The program ended."},
		"with a code":   {nil, nil, "exit 3", 1, "exit code 3"},
		"by a signal":   {nil, nil, "kill -9 $$", 1, "SIGKILL"},
		"never ready":   {nil, []string{"--ready", "exec:false", "--ready-timeout", "1s"}, "sleep 3600", 1, "it was not ready after 1s"},
		"unfit machine": {[]string{insatiable}, nil, "touch started; exit 0", 1, "Worker is unhealthy, exiting."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(append([]string{"--mode", "lb"}, row.flags...), "--", "sh", "-c", row.program)
			w := runCommand(t, apidouble.New(t), with(checked, row.env...), args...)
			require.Equal(t, row.code, w.wait(t), w.stderr)
			require.Contains(t, w.stderr.String(), row.says)
			require.NoFileExists(t, filepath.Join(w.cmd.Dir, "started"))
		})
	}
}
