package metrics

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// look asks a Handler for a page.
func look(t *testing.T, m *Metrics, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(false, false).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func of(state *State) Options {
	return Options{
		Version: "1.2.3", Commit: "abc", WorkerID: "w1", EndpointID: "ep", PingInterval: 10 * time.Second,
		State: func() State { return *state }, Journal: func() Depth { return Depth{Kept: true, Results: 7, Bytes: 7000} },
	}
}

func TestMetrics_ShowWhatTheyWereTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := &State{Phase: "ready", Slots: 4, Jobs: []Job{
			{ID: "a", State: "running", Taken: time.Now()},
			{ID: "b", State: "delivering", Taken: time.Now().Add(-time.Minute)},
			{ID: "c", State: "waiting", Taken: time.Now()},
		}}
		m := New(of(state))
		m.Took(2, 100*time.Millisecond, nil)
		m.Took(0, time.Second, nil)
		m.Took(0, time.Second, errors.New("no"))
		m.Started()
		m.Started()
		time.Sleep(10 * time.Second)
		m.Returned(10 * time.Second)
		m.Ended("completed", 200*time.Millisecond)
		m.Ended("released", time.Hour)
		m.Pinged(nil)
		time.Sleep(5 * time.Second)
		m.Pinged(errors.New("no"))
		m.Restarted()
		m.Cached("sync", Copied{Files: 2, Bytes: 300, Seconds: 0.5})
		m.Cached("sync", Copied{Files: 1, Bytes: 30, Seconds: 1})
		m.Checked(Check{ID: "disk", Result: "fail"})
		m.Checked(Check{ID: "disk", Result: "pass"})

		code, text := look(t, m, "/metrics")
		require.Equal(t, http.StatusOK, code)
		for _, line := range []string{
			`runpodctl_worker_cache_bytes_total{direction="sync"} 330`,
			`runpodctl_worker_cache_files_total{direction="sync"} 3`,
			`runpodctl_worker_cache_seconds_total{direction="sync"} 1.5`,
			`runpodctl_worker_check_result{check="disk",result="pass"} 1`,
			`runpodctl_worker_heartbeat_age_seconds 5`,
			`runpodctl_worker_heartbeats_total{result="error"} 1`,
			`runpodctl_worker_heartbeats_total{result="ok"} 1`,
			`runpodctl_worker_jobs_held{state="delivering"} 1`,
			`runpodctl_worker_jobs_held{state="running"} 1`,
			`runpodctl_worker_jobs_held{state="waiting"} 1`,
			`runpodctl_worker_jobs_taken_total 2`,
			`runpodctl_worker_jobs_total{outcome="completed"} 1`,
			`runpodctl_worker_jobs_total{outcome="failed"} 0`,
			`runpodctl_worker_jobs_total{outcome="released"} 1`,
			`runpodctl_worker_jobs_total{outcome="stopped"} 0`,
			`runpodctl_worker_jobs_total{outcome="undelivered"} 0`,
			`runpodctl_worker_journal_bytes 7000`,
			`runpodctl_worker_journal_depth 7`,
			`runpodctl_worker_oldest_job_age_seconds 75`,
			`runpodctl_worker_program_restarts_total 1`,
			`runpodctl_worker_ready 1`,
			`runpodctl_worker_slot_busy_ratio 0.25`,
			`runpodctl_worker_slot_busy_seconds_total 25`,
			`runpodctl_worker_slots 4`,
			`runpodctl_worker_takes_total{result="error"} 1`,
			`runpodctl_worker_takes_total{result="jobs"} 1`,
			`runpodctl_worker_takes_total{result="nothing"} 1`,
			`runpodctl_worker_run_seconds_sum 10`, `runpodctl_worker_deliver_seconds_count 1`, `runpodctl_worker_take_seconds_sum 0.1`,
			`runpodctl_worker_build_info{commit="abc",go_version="go`, "process_resident_memory_bytes", "go_goroutines",
		} {
			require.Contains(t, text, "\n"+line)
		}
	})
}

func TestMetrics_LeaveOutWhatTheyDoNotKnow(t *testing.T) {
	o := of(&State{})
	o.Journal = func() Depth { return Depth{} }
	_, text := look(t, New(o), "/metrics")
	require.NotContains(t, text, "journal_")
	require.NotContains(t, text, "heartbeat_age")
}

func TestMetrics_AreWhatPrometheusReads(t *testing.T) {
	m := New(of(&State{Phase: "ready", Slots: 1}))
	m.Took(1, 100*time.Second, nil)
	const id = "a \"check\" \\ of\nmine, {ü}"
	m.Checked(Check{ID: id, Result: "pass"})
	families := read(t, m)

	check := families["runpodctl_worker_check_result"]
	require.Equal(t, dto.MetricType_GAUGE, check.GetType())
	require.Equal(t, id, check.GetMetric()[0].GetLabel()[0].GetValue())
	require.Equal(t, dto.MetricType_COUNTER, families["runpodctl_worker_jobs_total"].GetType())
	require.Len(t, families["runpodctl_worker_jobs_total"].GetMetric(), len(outcomes))
	take := families["runpodctl_worker_take_seconds"]
	require.Equal(t, dto.MetricType_HISTOGRAM, take.GetType())
	buckets := take.GetMetric()[0].GetHistogram().GetBucket()
	require.Len(t, buckets, len(callBounds)+1, "and +Inf")
	require.Zero(t, buckets[len(callBounds)-1].GetCumulativeCount())
	require.EqualValues(t, 1, buckets[len(callBounds)].GetCumulativeCount())
}

func TestHealthz_IsAboutTheHeartbeatsLoop(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ping   error
		never  bool
		silent time.Duration
		want   int
	}{
		{"before the first heartbeat", nil, true, time.Hour, 200},
		{"it ticks", nil, false, 10 * time.Second, 200},
		{"it ticks, unanswered", errors.New("no"), false, 10 * time.Second, 200},
		{"it is late", nil, false, 40 * time.Second, 200},
		{"it has stopped", nil, false, 41 * time.Second, 503},
		{"the platform wants none", protocol.ErrNoURL, false, time.Hour, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := New(of(&State{}))
				if !tt.never {
					m.Pinged(tt.ping)
				}
				time.Sleep(tt.silent)
				code, text := look(t, m, "/healthz")
				require.Equal(t, tt.want, code, text)
			})
		})
	}
}

func TestReadyz(t *testing.T) {
	state := &State{}
	m := New(of(state))
	for phase, want := range map[string]int{"checking": 503, "loading": 503, "ready": 200, "restarting": 503, "draining": 503} {
		state.Phase = phase
		code, text := look(t, m, "/readyz")
		require.Equal(t, want, code, phase)
		if want != 200 {
			require.Equal(t, "the worker is "+phase+"\n", text)
		}
	}
}

func TestDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := &State{Phase: "ready", Slots: 2, Jobs: []Job{{ID: "a", BatchID: "b", State: "running", Taken: time.Now()}}}
		m := New(of(state))
		m.Started()
		m.Ended("failed", 0)
		m.Cached("hydrate", Copied{Files: 2, Bytes: 300, Seconds: 0.5})
		m.Cached("hydrate", Copied{Files: 1})
		m.Checked(Check{ID: "disk", Result: "pass", Summary: "fine"})
		m.Pinged(errors.New("no"))
		for i := range maxProblems + 5 {
			m.Complained(Problem{At: time.Now(), Level: "WARN", Message: strings.Repeat("x", i)})
		}
		time.Sleep(3 * time.Second)
		code, text := look(t, m, "/status.json")
		require.Equal(t, http.StatusOK, code)
		var d map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &d))
		require.Len(t, d["lastErrors"], maxProblems)
		require.Equal(t, strings.Repeat("x", maxProblems+4), d["lastErrors"].([]any)[0].(map[string]any)["message"], "the newest first")
		delete(d, "lastErrors")
		want := map[string]any{
			"state": "ready", "version": "1.2.3", "commit": "abc", "workerId": "w1", "endpointId": "ep",
			"since": "2000-01-01T00:00:00Z", "uptimeSeconds": 3.0, "concurrency": 2.0, "busy": 1.0, "jobsHeld": 1.0,
			"jobs":      []any{map[string]any{"id": "a", "batchId": "b", "state": "running", "takenAt": "2000-01-01T00:00:00Z", "ageSeconds": 3.0}},
			"jobsEnded": map[string]any{"failed": 1.0}, "programRestarts": 0.0,
			"heartbeat": map[string]any{"triedSecondsAgo": 3.0, "acceptedSecondsAgo": nil},
			"cache":     map[string]any{"hydrate": map[string]any{"files": 3.0, "bytes": 300.0, "seconds": 0.5}},
			"checks":    []any{map[string]any{"id": "disk", "result": "pass", "summary": "fine"}},
		}
		require.Equal(t, want, d)
	})
}

func TestDocument_OfAnEmptyWorker(t *testing.T) {
	_, text := look(t, New(of(&State{Phase: "loading"})), "/status.json")
	for _, empty := range []string{`"jobs": []`, `"checks": []`, `"lastErrors": []`, `"jobsEnded": {}`} {
		require.Contains(t, text, empty)
	}
}
