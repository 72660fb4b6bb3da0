package emulator_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/test/inprocess"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an Emulator with its sweeper running, called without a network.
type rig struct {
	t *testing.T
	*emulator.Emulator
	http *http.Client
	key  string
}

func newRig(t *testing.T, o emulator.Options) *rig {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	e, err := emulator.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		require.NoError(t, e.Close())
	})
	return &rig{t: t, Emulator: e, http: &http.Client{Transport: inprocess.Transport{Handler: e.Handler()}}, key: o.APIKey}
}

// call returns status and body of an answer.
func (r *rig) call(method, path, body string) (int, string) {
	r.t.Helper()
	code, text, err := r.try(context.Background(), method, path, body)
	require.NoError(r.t, err)
	return code, text
}

func (r *rig) try(ctx context.Context, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://local"+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	res, err := r.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// ok is the body of an answer that must be 200.
func (r *rig) ok(method, path, body string) string {
	r.t.Helper()
	code, text := r.call(method, path, body)
	require.Equal(r.t, http.StatusOK, code, text)
	return text
}

// run submits a job and returns its id.
func (r *rig) run(body string) string {
	r.t.Helper()
	return idOf(r.t, r.ok("POST", "/v2/local/run", body))
}

// take takes one job, or none, for a worker and returns its id.
func (r *rig) take(worker string) string {
	r.t.Helper()
	code, text := r.call("GET", "/v2/local/job-take/"+worker+"?gpu=X&job_in_progress=0", "")
	if code == http.StatusNoContent {
		return ""
	}
	require.Equal(r.t, http.StatusOK, code)
	return idOf(r.t, text)
}

// done reports on a job and returns the status of the answer.
func (r *rig) done(worker, job, body string) int {
	r.t.Helper()
	code, _ := r.call("POST", "/v2/local/job-done/"+worker+"/"+job+"?gpu=X&isStream=false", body)
	return code
}

func (r *rig) status(job string) string {
	r.t.Helper()
	return r.ok("GET", "/v2/local/status/"+job, "")
}

func idOf(t *testing.T, object string) string {
	t.Helper()
	var job struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(object), &job))
	require.NotEmpty(t, job.ID)
	return job.ID
}
