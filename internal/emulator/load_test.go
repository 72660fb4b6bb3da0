package emulator_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/emulator/webhook"
)

var loadTime = flag.Duration("load", time.Second, "how long TestMixedLoad goes on")

// Clients that submit, ask, cancel, listen and hang up, and workers that answer, fail and stream: what workers were
// told was accepted is what the counters say, and nothing is left running.
func TestMixedLoad(t *testing.T) {
	var hooks atomic.Int32
	before := runtime.NumGoroutine()
	t.Run("load", func(t *testing.T) {
		n := newNetwork(t, emulator.Options{
			TakeHold: 20 * time.Millisecond, Lease: time.Minute, RetainBytes: 1 << 20,
			Webhooks: webhook.Options{AllowPrivate: true, Gaps: []time.Duration{}},
		})
		target := newServer(t, func(http.ResponseWriter, *http.Request) { hooks.Add(1) })
		ctx, stopClients := context.WithTimeout(t.Context(), *loadTime)
		defer stopClients()
		var reported, cancelled atomic.Int32
		var clients, workers sync.WaitGroup
		for range 12 {
			clients.Go(func() { n.visit(ctx, target, &cancelled) })
		}
		working, stopWorkers := context.WithCancel(context.Background())
		for w := range 4 {
			workers.Go(func() { n.report(working, fmt.Sprint("w", w), &reported) })
		}
		clients.Wait()
		var h struct {
			Jobs struct{ Completed, Failed, InProgress, InQueue, Retried int }
		}
		require.Eventually(t, func() bool {
			_, answer, err := n.do(t.Context(), "GET", "/health", "")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(answer, &h))
			return h.Jobs.InProgress+h.Jobs.InQueue == 0
		}, 30*time.Second, 10*time.Millisecond)
		stopWorkers()
		workers.Wait()
		require.EqualValues(t, reported.Load(), h.Jobs.Completed+h.Jobs.Failed)
		require.Zero(t, h.Jobs.Retried)
		require.Positive(t, cancelled.Load())
		t.Logf("%+v, %d cancelled", h.Jobs, cancelled.Load())
	})
	require.Positive(t, hooks.Load())
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, 10*time.Second, 10*time.Millisecond)
}

// visit is one client after the other, each with something else in mind.
func (n *network) visit(ctx context.Context, hook string, cancelled *atomic.Int32) {
	for ctx.Err() == nil {
		var job struct{ ID, Status string }
		code, answer, err := n.do(ctx, "POST", "/run", `{"input":{"a":1},"webhook":"`+hook+`"}`)
		if err != nil || code != http.StatusOK || json.Unmarshal(answer, &job) != nil {
			continue
		}
		switch rand.IntN(4) {
		case 0:
			if _, answer, err = n.do(ctx, "POST", "/cancel/"+job.ID, ""); err == nil && json.Unmarshal(answer, &job) == nil && job.Status == "CANCELLED" {
				cancelled.Add(1)
			}
		case 1:
			_, _, _ = n.do(ctx, "GET", "/stream/"+job.ID+"?wait=1000", "")
		case 2:
			call, hangUp := context.WithTimeout(ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
			_, _, _ = n.do(call, "POST", "/runsync", `{"input":{"a":1}}`)
			hangUp()
		default:
			_, _, _ = n.do(ctx, "GET", "/status-sync/"+job.ID, "")
		}
	}
}

// report is a worker that counts its results that were accepted.
func (n *network) report(ctx context.Context, worker string, reported *atomic.Int32) {
	bodies := []string{`{"output":1}`, `{"error":"boom"}`, `{}`}
	for ctx.Err() == nil {
		code, answer, err := n.do(context.Background(), "GET", "/job-take-batch/"+worker+"?batch_size=4", "")
		var jobs []struct{ ID string }
		if err != nil || code != http.StatusOK || json.Unmarshal(answer, &jobs) != nil {
			continue
		}
		for _, job := range jobs {
			at := worker + "/" + job.ID + "?isStream=false"
			_, _, _ = n.do(context.Background(), "POST", "/job-stream/"+at, `{"output":"item"}`)
			if code, _, err := n.do(context.Background(), "POST", "/job-done/"+at, bodies[rand.IntN(3)]); err == nil && code == http.StatusOK {
				reported.Add(1)
			}
		}
	}
}
