package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/emulator/fault"
	"runpodctl-worker/internal/handler/echo"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker/apidouble"
	"runpodctl-worker/test/inprocess"
)

// chaos lets every tenth call of a worker go wrong, in every way that loses something.
const chaos = `{"seed":20260101,"rules":[
	{"worker":"w1","probability":0.015,"status":503},
	{"worker":"w1","probability":0.015,"status":429,"retryAfter":1},
	{"worker":"w1","probability":0.015,"reset":"before"},
	{"worker":"w1","probability":0.015,"reset":"after"},
	{"worker":"w1","probability":0.015,"truncate":9},
	{"worker":"w1","probability":0.015,"delay":"3s"},
	{"worker":"w1","probability":0.015,"delay":"3s","reset":"after"}]}`

// 10 000 jobs, a tenth of all calls goes wrong, and who is silent about a job for two seconds loses it: each job has one
// end, which is its own.
func TestWorker_ManyJobsManyFaults(t *testing.T) {
	jobs := 10_000
	if testing.Short() {
		jobs = 1000
	}
	synctest.Test(t, func(t *testing.T) {
		plan, err := fault.Parse([]byte(chaos))
		require.NoError(t, err)
		quiet := slog.New(slog.DiscardHandler)
		platform, err := emulator.New(emulator.Options{Lease: 2 * time.Second, MaxRetries: 5, Faults: plan, Log: quiet})
		require.NoError(t, err)
		living, die := context.WithCancel(t.Context())
		swept := make(chan struct{})
		go func() { defer close(swept); platform.Run(living) }()
		network := apidouble.NewPipes()
		server := &http.Server{Handler: platform.Handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(network) }()
		public := &http.Client{Transport: inprocess.Transport{Handler: platform.Handler()}}

		ids := make([]string, jobs)
		for n := range ids {
			var job struct{ ID string }
			read(t, public, http.MethodPost, "/run", fmt.Sprintf(`{"input":{"n":%d}}`, n), &job)
			ids[n] = job.ID
		}
		at := func(path string) string { return "http://local/v2/local/" + path + "?gpu=X" }
		api := client.New(client.Config{
			URLs: protocol.Templates{
				GetJob: at("job-take/$ID"), Ping: at("ping/$RUNPOD_POD_ID"), PostOutput: at("job-done/$RUNPOD_POD_ID/$ID"),
			},
			WorkerID: "w1", Concurrency: 64, PingInterval: 500 * time.Millisecond, Dial: network.Dial,
		})
		cfg := Config{Concurrency: 64, PingInterval: 500 * time.Millisecond}
		drain, stopTaking := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := New(cfg, func() Handler { return echo.New() }, api).Run(drain, t.Context())
			ended <- err
		}()

		var health struct {
			Jobs struct{ Completed, Failed, InProgress, InQueue, Retried int }
		}
		began := time.Now()
		for health.Jobs.Completed+health.Jobs.Failed < jobs {
			require.Less(t, time.Since(began), 6*time.Hour, "jobs got lost: %+v", health.Jobs)
			time.Sleep(time.Second)
			read(t, public, http.MethodGet, "/health", "", &health)
		}
		stopTaking()
		require.NoError(t, <-ended)
		read(t, public, http.MethodGet, "/health", "", &health)
		require.Equal(t, jobs, health.Jobs.Completed+health.Jobs.Failed, "no job has two ends")
		require.Zero(t, health.Jobs.InProgress+health.Jobs.InQueue)
		// Time passes here while a take stalls, and every second stalled one loses what it brings: six of them in a row are not rare.
		require.LessOrEqual(t, health.Jobs.Failed, jobs/100, "the platform gives few jobs up")
		require.Positive(t, health.Jobs.Retried)
		for n, id := range ids {
			var job struct {
				Status protocol.Status
				Output struct{ N int }
				Error  string
			}
			if read(t, public, http.MethodGet, "/status/"+id, "", &job); job.Status == protocol.Failed {
				require.Equal(t, "job timed out after 5 retries", job.Error, "no worker ever got it")
				continue
			}
			require.Equal(t, protocol.Completed, job.Status)
			require.Equal(t, n, job.Output.N)
		}
		var did struct{ Rules []struct{ Fired int } }
		read(t, public, http.MethodGet, "/_emulator/faults", "", &did)
		for n, rule := range did.Rules {
			require.Positive(t, rule.Fired, "rule %d", n)
		}

		api.Close()
		require.NoError(t, server.Close())
		<-served
		die()
		<-swept
		require.NoError(t, platform.Close())
	})
}

func read(t *testing.T, public *http.Client, method, path, body string, into any) {
	t.Helper()
	if !strings.HasPrefix(path, "/_") {
		path = "/v2/local" + path
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://local"+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := public.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, path)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
}
