package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/emulator/fault"
	"runpodctl-worker/internal/handler/echo"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker"
	"runpodctl-worker/internal/worker/apidouble"
)

func faults(t *testing.T, plan string) fault.Plan {
	t.Helper()
	p, err := fault.Parse([]byte(plan))
	require.NoError(t, err)
	return p
}

func TestFaultsOverTheAPI(t *testing.T) {
	const path, rule = "/_emulator/faults", `{"seed":7,"rules":[{"route":"health","status":503,"times":1}]}`
	r := newRig(t, emulator.Options{APIKey: "K"})
	require.Equal(t, `{"rules":[]}`, r.ok("GET", path, ""))
	require.Equal(t, `{"rules":[{"route":"health","probability":1,"times":1,"status":503,"seed":7,"matched":0,"fired":0}]}`, r.ok("POST", path, rule))
	code, _ := r.call("GET", "/v2/local/health", "")
	require.Equal(t, 503, code)
	r.ok("GET", "/v2/local/health", "")
	require.Contains(t, r.ok("GET", path, ""), `"matched":1,"fired":1`)
	require.Equal(t, `{"removed":1}`, r.ok("DELETE", path, ""))

	code, answer := r.call("POST", path, `{"rules":[{"status":42}]}`)
	require.Equal(t, 400, code)
	require.Equal(t, `{"status":400,"title":"Bad Request","detail":"bad request: rules[0].status: want 200 to 599, not 42"}`, answer)
	code, _ = r.call("PUT", path, rule)
	require.Equal(t, 405, code)
	r.key = ""
	code, _ = r.call("GET", path, "")
	require.Equal(t, 401, code)
}

// A lost take leaves its job with the worker, as a reply that got lost on its way does; in-process calls break like others.
func TestLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{Faults: faults(t, `{"rules":[
			{"route":"job-take","reset":"after","times":1},
			{"route":"run","reset":"before","times":1},
			{"route":"status","truncate":5}]}`)})
		_, _, err := r.try(t.Context(), "POST", "/v2/local/run", `{"input":1}`)
		require.Error(t, err)
		id := r.run(`{"input":1}`)
		_, _, err = r.try(t.Context(), "GET", "/v2/local/job-take/w1?", "")
		require.Error(t, err)
		require.Contains(t, r.ok("GET", "/v2/local/health", ""), `"inProgress":1,"inQueue":0`, "the first job never came, the second one went")
		time.Sleep(41 * time.Second)
		require.Equal(t, id, r.take("w1"))
		_, text, err := r.try(t.Context(), "GET", "/v2/local/status/"+id, "")
		require.Error(t, err)
		require.Equal(t, `{"del`, text)
	})
}

// A job that is handed out twice has one end.
func TestDuplicateHandOut(t *testing.T) {
	for name, second := range map[string]string{"to another worker": "w2", "to the same worker": "w1"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulator.Options{
				TakeHold: time.Millisecond, Endpoints: []string{"local", "other"},
				Faults: faults(t, `{"rules":[{"route":"job-take","duplicate":true,"times":1}]}`),
			})
			id := r.run(`{"input":1}`)
			require.Equal(t, id, r.take("w1"))
			code, _ := r.call("GET", "/v2/other/job-take/w1?", "")
			require.Equal(t, 204, code, "endpoints do not share their jobs")
			require.Equal(t, id, r.take(second))
			require.Empty(t, r.take("w3"))
			require.Equal(t, 200, r.done("w1", id, `{"output":1}`))
			require.Equal(t, 404, r.done(second, id, `{"output":2}`))
			require.Contains(t, r.status(id), `"output":1,"status":"COMPLETED","workerId":"w1"`)
		})
	}
}

// mixed lets about every tenth call of a worker go wrong, in every way there is.
const mixed = `{"seed":1,"rules":[
	{"worker":"w1","probability":0.015,"status":500},
	{"worker":"w1","probability":0.015,"status":502,"body":"<html>","contentType":"text/html"},
	{"worker":"w1","probability":0.015,"status":429,"retryAfter":1},
	{"worker":"w1","probability":0.015,"reset":"before"},
	{"worker":"w1","probability":0.015,"reset":"after"},
	{"worker":"w1","probability":0.015,"truncate":7},
	{"worker":"w1","probability":0.015,"contentType":"text/html"},
	{"worker":"w1","probability":0.015,"delay":"3s"},
	{"worker":"w1","probability":0.05,"duplicate":true}]}`

// The real worker over a network that fails it again and again: every job ends, once, with its own result.
func TestAWorkerSurvivesFaults(t *testing.T) {
	const jobs = 2000
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{Lease: 2 * time.Second, MaxRetries: 5, Faults: faults(t, mixed)})
		network := apidouble.NewPipes()
		srv := &http.Server{Handler: r.Handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
		served := make(chan struct{})
		go func() { defer close(served); _ = srv.Serve(network) }()

		ids := make([]string, jobs)
		for n := range ids {
			ids[n] = r.run(fmt.Sprintf(`{"input":{"n":%d}}`, n))
		}
		at := func(path string) string { return "http://local/v2/local/" + path + "?gpu=X" }
		api := client.New(client.Config{
			URLs: protocol.Templates{
				GetJob: at("job-take/$ID"), Ping: at("ping/$RUNPOD_POD_ID"),
				PostOutput: at("job-done/$RUNPOD_POD_ID/$ID"), PostStream: at("job-stream/$RUNPOD_POD_ID/$ID"),
			},
			WorkerID: "w1", Concurrency: 16, PingInterval: 500 * time.Millisecond, Dial: network.Dial,
		})
		drain, stopTaking := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := worker.New(worker.Config{Concurrency: 16, PingInterval: 500 * time.Millisecond}, func() worker.Handler { return echo.New() }, api).Run(drain, t.Context())
			ended <- err
		}()

		var h struct {
			Jobs struct{ Completed, Failed, InProgress, InQueue, Retried int }
		}
		for start := time.Now(); h.Jobs.Completed+h.Jobs.Failed < jobs; time.Sleep(time.Second) {
			require.NoError(t, json.Unmarshal([]byte(r.ok("GET", "/health", "")), &h))
			require.Equal(t, jobs, h.Jobs.Completed+h.Jobs.Failed+h.Jobs.InProgress+h.Jobs.InQueue)
			require.Less(t, time.Since(start), time.Hour, "jobs got lost: %+v", h.Jobs)
		}
		require.Zero(t, h.Jobs.Failed)
		require.Positive(t, h.Jobs.Retried)
		for n, id := range ids {
			require.Contains(t, r.status(id), fmt.Sprintf(`"output":{"n":%d},`, n))
		}
		var did struct{ Rules []struct{ Fired int } }
		require.NoError(t, json.Unmarshal([]byte(r.ok("GET", "/_emulator/faults", "")), &did))
		for n, rule := range did.Rules {
			require.Positive(t, rule.Fired, "rule %d", n)
		}
		stopTaking()
		require.NoError(t, <-ended)
		api.Close()
		require.NoError(t, srv.Close())
		<-served
	})
}
