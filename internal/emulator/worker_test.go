package emulator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/test/inprocess"
)

func TestBatchTake(t *testing.T) {
	r := newRig(t, emulator.Options{})
	a, b, c := r.run(`{"input":1}`), r.run(`{"input":2}`), r.run(`{"input":3}`)
	require.Equal(t, fmt.Sprintf(`[{"id":"%s","input":1},{"id":"%s","input":2}]`, a, b),
		r.ok("GET", "/v2/local/job-take-batch/w1?batch_size=2&job_in_progress=0", ""))
	require.Equal(t, fmt.Sprintf(`[{"id":"%s","input":3}]`, c),
		r.ok("GET", "/v2/local/job-take-batch/w1&batch_size=2&job_in_progress=0", ""))
}

// The Hub's runner gives a take URL with a literal $RUNPOD_POD_ID and no ping, but the results
// come under the worker's id.
func TestLiteralWorkerID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{Endpoints: []string{"IDE"}})
		got := make(chan string, 1)
		go func() { _, text := r.call("POST", "/v2/IDE/runsync", `{"input":1}`); got <- text }()
		synctest.Wait()
		id := idOf(t, r.ok("GET", "/v2/IDE/job-take/$RUNPOD_POD_ID&job_in_progress=0", ""))
		r.ok("GET", "/v2/IDE/ping/abc?job_id="+id, "")
		r.ok("POST", "/v2/IDE/job-done/abc/"+id+"?gpu=$RUNPOD_GPU_TYPE_ID&isStream=false", `{"output":1}`)
		require.Contains(t, <-got, `"status":"COMPLETED","workerId":"abc"`)
	})
}

// The observed rule of the platform: redelivered once after 40 s of silence, then failed.
func TestSilentWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		time.Sleep(500 * time.Millisecond) // between two sweeps
		require.Equal(t, id, r.take("w1"))
		time.Sleep(42 * time.Second)
		require.Equal(t, `{"delayTime":500,"id":"`+id+`","retries":1,"status":"IN_QUEUE","workerId":"w1"}`, r.status(id))
		require.Equal(t, id, r.take("w2"))
		time.Sleep(39 * time.Second)
		require.Contains(t, r.status(id), `"status":"IN_PROGRESS"`)
		time.Sleep(2 * time.Second)
		require.Equal(t, `{"delayTime":42500,"error":"job timed out after 1 retries","executionTime":40500,"id":"`+id+
			`","retries":1,"status":"FAILED","workerId":"w2"}`, r.status(id))
		require.Contains(t, r.ok("GET", "/health", ""), `"failed":1,"inProgress":0,"inQueue":0,"retried":1`)
		require.Equal(t, 404, r.done("w2", id, `{"output":1}`))
	})
}

// The stop for a worker that fell silent waits for it a while, and not for ever.
func TestStopsForSilentWorkersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{Lease: time.Hour, WorkerSeen: time.Minute})
		for w := range 10 {
			r.run(`{"input":1,"policy":{"executionTimeout":120000}}`)
			require.NotEmpty(t, r.take(fmt.Sprint("w", w)))
		}
		time.Sleep(122 * time.Second) // the workers are forgotten by now, and their jobs fail
		require.Equal(t, 10, r.StopBoxes())
		require.Contains(t, r.ok("GET", "/v2/local/job-stop/w1?gpu=X", ""), "jobsToStop", "one comes back")
		time.Sleep(time.Minute + 2*time.Second)
		require.Zero(t, r.StopBoxes())
	})
}

func TestPingsKeepAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		require.Equal(t, id, r.take("w1"))
		for range 12 {
			time.Sleep(10 * time.Second)
			r.ok("GET", "/v2/local/ping/w1?job_id=other,"+id+"&runpod_version=1.12.0", "")
		}
		require.Equal(t, 200, r.done("w1", id, `{"output":1}`))
		require.NotContains(t, r.status(id), "retries")
	})
}

// A worker whose job has gone to another is told to stop, once per ping that names it.
func TestPingForALostJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		require.Equal(t, id, r.take("w1"))
		time.Sleep(42 * time.Second)
		require.Equal(t, id, r.take("w2"))
		r.ok("GET", "/v2/local/ping/w1?job_id="+id, "")
		require.Equal(t, `{"jobsToStop":["`+id+`"]}`, r.ok("GET", "/v2/local/job-stop/w1?", ""))
		require.Equal(t, 404, r.done("w1", id, `{"output":1}`))
		require.Equal(t, 200, r.done("w2", id, `{"output":2}`))
	})
}

func TestAStopIsNotForTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1,"policy":{"executionTimeout":5000}}`)
		require.Equal(t, id, r.take("w1"))
		time.Sleep(7 * time.Second) // its stop waits for the worker to ask
		r.ok("POST", "/v2/local/retry/"+id, "")
		require.Equal(t, id, r.take("w1"))
		start := time.Now()
		require.Contains(t, r.ok("GET", "/v2/local/job-stop/w1?", ""), id)
		require.GreaterOrEqual(t, time.Since(start), 5*time.Second, "only the limit of the second attempt ends it")
	})
}

func TestExecutionTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1,"policy":{"executionTimeout":5000}}`)
		time.Sleep(7 * time.Second) // waiting does not count
		require.Equal(t, id, r.take("w1"))
		time.Sleep(4 * time.Second)
		require.Contains(t, r.status(id), `IN_PROGRESS`)
		require.Equal(t, `{"jobsToStop":["`+id+`"]}`, r.ok("GET", "/v2/local/job-stop/w1?", ""))
		require.Regexp(t, `"error":"executionTimeout exceeded","executionTime":[56]\d{3},"id":"`+id+`","status":"FAILED"`, r.status(id))
		require.Equal(t, 404, r.done("w1", id, `{"output":1}`))
	})
}

// A job past its ttl is gone, and one that never started never does.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		running, waiting := r.run(`{"input":1,"policy":{"ttl":10000}}`), r.run(`{"input":1,"policy":{"ttl":10000}}`)
		require.Equal(t, running, r.take("w1"))
		time.Sleep(10 * time.Second)
		for _, id := range []string{running, waiting} {
			code, _ := r.call("GET", "/v2/local/status/"+id, "")
			require.Equal(t, 404, code)
		}
		require.Empty(t, r.take("w1"))
		require.Equal(t, `{"jobsToStop":["`+running+`"]}`, r.ok("GET", "/v2/local/job-stop/w1?", ""))
		require.Equal(t, 404, r.done("w1", running, `{"output":1}`))
	})
}

func TestRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		async := r.run(`{"input":1}`)
		sync := idOf(t, r.ok("POST", "/v2/local/runsync?wait=1000", `{"input":1}`))
		for _, id := range []string{async, sync} {
			require.Equal(t, id, r.take("w1"))
			require.Equal(t, 200, r.done("w1", id, `{"output":1}`))
		}
		known := func(id string) bool { code, _ := r.call("GET", "/v2/local/status/"+id, ""); return code == 200 }
		time.Sleep(time.Minute - 1)
		require.True(t, known(sync))
		time.Sleep(time.Nanosecond)
		require.False(t, known(sync))
		time.Sleep(29*time.Minute - 1)
		require.True(t, known(async))
		time.Sleep(time.Nanosecond)
		require.False(t, known(async))
	})
}

// A taker that has gone while its call was held takes nothing along.
func TestTakerGoesWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, _, err := r.try(ctx, "GET", "/v2/local/job-take/w1?", "")
			gone <- err
		}()
		synctest.Wait()
		cancel()
		require.Error(t, <-gone)
		id := r.run(`{"input":1}`)
		require.Equal(t, id, r.take("w2"))
	})
}

func TestCloseEndsHeldCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := emulator.New(emulator.Options{})
		require.NoError(t, err)
		r := newRig(t, emulator.Options{})
		r.http.Transport = inprocess.Transport{Handler: e.Handler()}
		start, codes := time.Now(), make(chan int, 3)
		for _, call := range [][2]string{{"GET", "/job-take/w?"}, {"GET", "/job-stop/w?"}, {"GET", "/job-stop/v?"}} {
			go func() { code, _ := r.call(call[0], call[1], ""); codes <- code }()
		}
		synctest.Wait()
		require.NoError(t, e.Close())
		for range 3 {
			require.Equal(t, 204, <-codes)
		}
		require.Zero(t, time.Since(start))
	})
}
