package cli

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// patience is for what must happen soon, on a machine that may be busy.
const patience = 60 * time.Second

// hosted is a production worker on a platform of the test's, in this process.
type hosted struct {
	*testing.T
	*invocation
	api  *apidouble.API
	code chan int
}

func onPlatform(t *testing.T, env map[string]string, change func(*apidouble.API), args ...string) *hosted {
	t.Helper()
	api := apidouble.New(t)
	api.Hold = time.Second
	if change != nil {
		change(api)
	}
	urls := api.Templates()
	all := map[string]string{
		"RUNPOD_WEBHOOK_GET_JOB": urls.GetJob, "RUNPOD_WEBHOOK_POST_OUTPUT": urls.PostOutput, "RUNPOD_WEBHOOK_PING": urls.Ping,
		"RUNPOD_POD_ID": "w1", "RUNPOD_ENDPOINT_ID": "ep", "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "1", "RUNPOD_SKIP_GPU_CHECK": "1",
		"XDG_STATE_HOME": t.TempDir(),
	}
	maps.Copy(all, env)
	for name, value := range all { // the handler's program has them too
		t.Setenv(name, value)
	}
	h := &hosted{t, &invocation{env: all, signals: make(chan os.Signal, 3)}, api, make(chan int, 1)}
	go func() { h.code <- h.run(append([]string{"run"}, args...)...) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stdout:\n%s\nstderr:\n%s", &h.stdout, &h.stderr)
		}
	})
	return h
}

// addr is where the worker can be looked at.
func (h *hosted) addr() string {
	h.Helper()
	says := regexp.MustCompile(`looked at: (http://[^/]+)/`)
	require.Eventually(h, func() bool { return says.MatchString(h.stderr.String()) }, patience, 10*time.Millisecond)
	return says.FindStringSubmatch(h.stderr.String())[1]
}

func (h *hosted) look(path string) (int, string) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), http.MethodGet, path, nil)
	require.NoError(h, err)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(h, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(h, err)
	return resp.StatusCode, string(body)
}

// soon waits for an answer.
func (h *hosted) soon(path string, code int) string {
	h.Helper()
	var text string
	require.Eventually(h, func() bool {
		var got int
		got, text = h.look(path)
		return got == code
	}, patience, 20*time.Millisecond, "%s: %d", path, code)
	return text
}

func (h *hosted) end() int {
	h.Helper()
	h.signals <- syscall.SIGTERM
	select {
	case code := <-h.code:
		return code
	case <-time.After(patience):
		require.FailNow(h, "it did not end")
		return 0
	}
}

func handlerFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "handler.py")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRun_CanBeLookedAt(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	h := onPlatform(t, map[string]string{"GATE": gate, "RUNPOD_PING_INTERVAL": "200", "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": ""}, nil,
		"--metrics-addr", ":0", "--pprof", "--checks", checksFile(t), "--handler", handlerFile(t, `
import os, time, runpod
def handler(job):
    if job["id"] == "bad": raise ValueError("no")
    while not os.path.exists(os.environ["GATE"]): time.sleep(0.02)
    return 1
while not os.path.exists(os.environ["GATE"] + "-loaded"): time.sleep(0.02)
runpod.serverless.start({"handler": handler})
`))
	addr := h.addr()
	name, _, err := net.SplitHostPort(addr[len("http://"):])
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", name, "of a port alone, for this machine only")

	require.Contains(t, h.soon(addr+"/readyz", 503), "the worker is ")
	h.soon(addr+"/healthz", 200)
	require.NoError(t, os.WriteFile(gate+"-loaded", nil, 0o600))
	h.soon(addr+"/readyz", 200)

	h.api.Offer(`{"id":"bad","input":{}}`, `{"id":"long","batchId":"b1","input":{}}`)
	var doc struct {
		State  string
		Jobs   []struct{ ID, BatchID, State string }
		Ended  map[string]int `json:"jobsEnded"`
		Checks []struct{ ID, Result string }
		Errors []struct{ Level, Job, Message string } `json:"lastErrors"`
	}
	require.Eventually(t, func() bool {
		_, text := h.look(addr + "/status.json")
		require.NoError(t, json.Unmarshal([]byte(text), &doc), text)
		return doc.Ended["failed"] == 1 && len(doc.Jobs) == 1 && doc.Jobs[0].State == "running"
	}, patience, 20*time.Millisecond)
	require.Equal(t, "ready", doc.State)
	require.Equal(t, "b1", doc.Jobs[0].BatchID)
	require.Contains(t, doc.Checks, struct{ ID, Result string }{"shell", "pass"})
	require.Equal(t, "bad", doc.Errors[0].Job)
	require.Contains(t, doc.Errors[0].Message, "ValueError")

	_, text := h.look(addr + "/metrics")
	for _, line := range []string{
		`runpodctl_worker_jobs_total{outcome="failed"} 1`, `runpodctl_worker_jobs_held{state="running"} 1`, `runpodctl_worker_slots 1`,
		`runpodctl_worker_slot_busy_ratio 1`, `runpodctl_worker_ready 1`, `runpodctl_worker_check_result{check="shell",result="pass"} 1`,
		`runpodctl_worker_take_seconds_count `, `runpodctl_worker_run_seconds_count 1`, `runpodctl_worker_heartbeat_age_seconds `,
		`runpodctl_worker_journal_depth 0`, `runpodctl_worker_journal_bytes 0`,
	} {
		require.Contains(t, text, "\n"+line)
	}
	code, _ := h.look(addr + "/debug/pprof/heap")
	require.Equal(t, http.StatusOK, code)

	h.signals <- syscall.SIGTERM
	require.Contains(t, h.soon(addr+"/readyz", 503), "draining")
	h.soon(addr+"/healthz", 200)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	select {
	case code = <-h.code:
	case <-time.After(patience):
	}
	require.Equal(t, exitOK, code)
}

func TestRun_RealtimeCanBeLookedAt(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(free.Addr().String())
	require.NoError(t, err)
	require.NoError(t, free.Close())
	gate := filepath.Join(t.TempDir(), "gate")
	h := onPlatform(t, map[string]string{"GATE": gate, "RUNPOD_REALTIME_PORT": port, "RUNPOD_PING_INTERVAL": "200"}, nil,
		"--metrics-addr", ":0", "--handler", handlerFile(t, `
import os, time, runpod
def handler(job):
    while not os.path.exists(os.environ["GATE"]): time.sleep(0.02)
    return {"error": "no"} if job["id"] == "bad" else 1
while not os.path.exists(os.environ["GATE"] + "-loaded"): time.sleep(0.02)
runpod.serverless.start({"handler": handler})
`))
	addr := h.addr()
	require.Contains(t, h.soon(addr+"/readyz", 503), "the worker is ")
	require.NoError(t, os.WriteFile(gate+"-loaded", nil, 0o600))
	h.soon(addr+"/readyz", 200)
	posted := make(chan error, 2)
	for _, id := range []string{"good", "bad"} {
		go func() {
			resp, err := http.Post("http://127.0.0.1:"+port+"/ep/realtime", "application/json", strings.NewReader(`{"id":"`+id+`","input":{}}`))
			if err == nil {
				err = resp.Body.Close()
			}
			posted <- err
		}()
	}
	shows := func(line string) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, text := h.look(addr + "/metrics")
			return strings.Contains(text, "\n"+line)
		}, patience, 20*time.Millisecond, line)
	}
	shows(`runpodctl_worker_jobs_held{state="running"} 1`)
	shows(`runpodctl_worker_slots_busy 1`)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.NoError(t, <-posted)
	require.NoError(t, <-posted)
	for _, line := range []string{
		`runpodctl_worker_jobs_total{outcome="completed"} 1`, `runpodctl_worker_jobs_total{outcome="failed"} 1`, `runpodctl_worker_jobs_taken_total 2`,
		`runpodctl_worker_run_seconds_count 2`, `runpodctl_worker_slots 1`, `runpodctl_worker_heartbeat_age_seconds `, `process_`,
	} {
		shows(line)
	}
	h.soon(addr+"/healthz", 200)
	require.Equal(t, exitOK, h.end())
}

func TestRun_LoadBalancedCanBeLookedAt(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	h := onPlatform(t, map[string]string{"GATE": gate}, nil, "--mode", "lb", "--metrics-addr", ":0", "--checks", checksFile(t),
		"--ready", `exec:test -e "$GATE"`, "--", "sh", "-c", `trap 'while [ -e "$GATE" ]; do sleep 0.05; done; exit 0' TERM; while :; do sleep 0.05; done`)
	addr := h.addr()
	require.Contains(t, h.soon(addr+"/readyz", 503), "the worker is ")
	h.soon(addr+"/healthz", 200)
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	h.soon(addr+"/readyz", 200)
	_, text := h.look(addr + "/metrics")
	require.Contains(t, text, "\nrunpodctl_worker_ready 1")
	require.Contains(t, text, `runpodctl_worker_check_result{check="shell",result="pass"} 1`)
	_, text = h.look(addr + "/status.json")
	require.Contains(t, text, `"state": "ready"`)
	h.signals <- syscall.SIGTERM
	require.Contains(t, h.soon(addr+"/readyz", 503), "the worker is draining")
	require.NoError(t, os.Remove(gate))
	select {
	case code := <-h.code:
		require.Equal(t, exitOK, code, "%s", &h.stderr)
	case <-time.After(patience):
		require.Fail(t, "it did not end")
	}
}

func TestRun_ShowsWhatWaitsInTheJournal(t *testing.T) {
	h := onPlatform(t, nil, func(api *apidouble.API) {
		api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: http.StatusServiceUnavailable} })
	}, "--metrics-addr", ":0", "--handler", "echo")
	h.api.Offer(`{"id":"j","input":"what it says"}`)
	addr := h.addr()
	depth := regexp.MustCompile(`\nrunpodctl_worker_journal_depth 1\n`)
	size := regexp.MustCompile(`\nrunpodctl_worker_journal_bytes [1-9]`)
	waits := func() bool {
		_, text := h.look(addr + "/metrics")
		return depth.MatchString(text) && size.MatchString(text)
	}
	require.Eventually(t, waits, patience, 20*time.Millisecond)
	h.api.On(apidouble.Done, nil)
	require.Eventually(t, func() bool { return !waits() }, patience, 20*time.Millisecond)
	require.Equal(t, exitOK, h.end())
}

// checksFile has one check that passes.
func checksFile(t *testing.T) string {
	t.Helper()
	return written(t, "checks:\n  - {name: shell, exec: [sh, -c, 'exit 0']}\n")
}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRun_RefusesAddressesThatMakeNoSense(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, tt := range []struct {
		name string
		args []string
		code int
		line string
	}{
		{"no port", []string{"--metrics-addr", "here"}, 2, `--metrics-addr "here": "here" is not a port`},
		{"a config file", []string{"--config", written(t, "metrics_addr: here\n")}, 2, `--metrics-addr "here"`},
		{"nothing", []string{"--metrics-addr", ""}, 2, `--metrics-addr "": "" is not a port`},
		{"a taken port", []string{"--metrics-addr", taken.Addr().String()}, 1, "that port is taken"},
		{"an address that is not here", []string{"--metrics-addr", "192.0.2.1:9"}, 1, "--metrics-addr: listen tcp 192.0.2.1:9"},
		{"profiles of nothing", []string{"--pprof"}, 2, "--pprof goes with --metrics-addr"},
		{"profiles for everybody", []string{"--pprof", "--metrics-addr", "0.0.0.0:0"}, 2, "for this machine only, not 0.0.0.0:0"},
		{"one job", []string{"--test_input", "{}", "--metrics-addr", ":0"}, 2, "--metrics-addr makes no sense beside it"},
		{"more lines than fit", []string{"--error-logs", "5000"}, 2, "--error-logs 5000: want 0 to 1000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := &invocation{env: map[string]string{"RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:1/job-take/x", "RUNPOD_WEBHOOK_POST_OUTPUT": "http://127.0.0.1:1/x"}}
			require.Equal(t, tt.code, i.run(append([]string{"run", "--handler", "echo"}, tt.args...)...), &i.stderr)
			require.Contains(t, i.stderr.String(), tt.line)
		})
	}
}
