package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

type batch struct {
	ID, EndpointID, Name, Status                                     string
	RequestTotal, RequestInProgress, RequestCompleted, RequestFailed int
	CreatedAt                                                        int64
}

type batchPage struct {
	Requests []struct {
		ID, Status, Error      string
		Output                 json.RawMessage
		StartedAt, CompletedAt string
	}
	Total, Offset, Limit int
	HasMore              bool
}

func read[T any](r *rig, method, path, body string) (v T) {
	r.t.Helper()
	require.NoError(r.t, json.Unmarshal([]byte(r.ok(method, "/v2/local"+path, body)), &v))
	return v
}

func (r *rig) newBatch(requests int) string {
	r.t.Helper()
	inputs := make([]string, requests)
	for i := range inputs {
		inputs[i] = fmt.Sprintf(`{"input":%d}`, i)
	}
	return read[batch](r, "POST", "/batch", "["+strings.Join(inputs, ",")+"]").ID
}

func (r *rig) results(id string) batchPage {
	return read[batchPage](r, "GET", "/batch/"+id+"/requests", "")
}

func TestABatchFromDraftToResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		now := time.Now()
		answer := r.ok("POST", "/v2/local/batch", `[]`)
		require.Regexp(t, `^{"id":"batch_[0-9a-f]{32}","status":"DRAFT"}\n$`, answer)
		id := idOf(t, answer)
		r.ok("POST", "/v2/local/batch/"+id+"/requests", `{"requests":[{"input":{"a":1.0}},{"input":2},{"input":3},{"input":4}]}`)
		r.ok("DELETE", "/v2/local/batch/"+id+"/requests/"+r.results(id).Requests[3].ID, "")
		require.Equal(t, "nightly", read[batch](r, "PUT", "/batch/"+id, `{"name":"nightly"}`).Name)
		require.Empty(t, r.take("w1"), "a draft does not run")

		require.Equal(t, "FINALIZED", read[batch](r, "POST", "/batch/"+id+"/finalize", "").Status)
		jobs := r.results(id).Requests
		require.Equal(t, `{"batchId":"`+id+`","id":"`+jobs[0].ID+`","input":{"a":1.0}}`, r.ok("GET", "/job-take/w1?", ""))
		require.Equal(t, jobs[1].ID, r.take("w1"))
		time.Sleep(time.Second)
		r.done("w1", jobs[0].ID, `{"output":"<1>"}`)
		require.Equal(t, batch{
			ID: id, EndpointID: "local", Name: "nightly", Status: "FINALIZED", CreatedAt: now.UnixMilli(),
			RequestTotal: 3, RequestInProgress: 1, RequestCompleted: 1,
		}, read[batch](r, "GET", "/batch/"+id, ""))
		r.done("w1", jobs[1].ID, `{"error":"boom"}`)
		require.Equal(t, jobs[2].ID, r.take("w1"))
		r.done("w1", jobs[2].ID, `{"output":3}`)

		text := r.ok("GET", "/v2/local/batch/"+id+"/requests", "")
		require.Contains(t, text, `"output":"<1>"`)
		page := r.results(id)
		start := now.Add(5 * time.Second).UTC() // the take that found nothing
		require.Equal(t, "COMPLETED", page.Requests[0].Status)
		require.Equal(t, start.Format(time.RFC3339), page.Requests[0].StartedAt)
		require.Equal(t, start.Add(time.Second).Format(time.RFC3339), page.Requests[0].CompletedAt)
		require.Equal(t, "FAILED", page.Requests[1].Status)
		require.Equal(t, "boom", page.Requests[1].Error)
		require.Contains(t, r.status(jobs[2].ID), `"COMPLETED"`, "a request is an ordinary job")

		time.Sleep(25 * time.Hour)
		got := read[batch](r, "GET", "/batch/"+id, "")
		require.Equal(t, []int{3, 2, 1}, []int{got.RequestTotal, got.RequestCompleted, got.RequestFailed}, "counts outlive the jobs")
		require.Equal(t, "COMPLETED", r.results(id).Requests[0].Status)
		require.Empty(t, r.results(id).Requests[0].Output)
	})
}

func TestBatchRefusals(t *testing.T) {
	list := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"input":1},`, n), ",") }
	for name, row := range map[string]struct {
		method, path, body string // {draft}, {final} and {req} are filled in
		status             int
		detail             string
	}{
		"no array":                {"POST", "/batch", `{}`, 400, "bad request: body: cannot be a JSON object"},
		"no JSON":                 {"POST", "/batch", `[`, 400, "bad request: body: unexpected end of JSON input"},
		"a request without input": {"POST", "/batch", `[{"input":1},{}]`, 400, "bad request: requests[1].input: is missing"},
		"a request that is null":  {"POST", "/batch", `[null]`, 400, "bad request: requests[0].input: is missing"},
		"a policy out of bounds":  {"POST", "/batch/{draft}/requests", `{"requests":[{"input":1,"policy":{"ttl":1}}]}`, 400, "bad request: requests[0].policy.ttl: must be between 10000 and 604800000 milliseconds, not 1"},
		"too many":                {"POST", "/batch", "[" + list(5001) + "]", 400, "bad request: requests: a batch has at most 5000"},
		"too many at last":        {"POST", "/batch/{draft}/requests", `{"requests":[` + list(5000) + `]}`, 400, "bad request: requests: a batch has at most 5000"},
		"too large":               {"POST", "/batch", `["` + strings.Repeat("x", protocol.MaxRunBody) + `"]`, 400, "bad request: body: exceeded max body size of 10MiB"},
		"adding when it runs":     {"POST", "/batch/{final}/requests", `{"requests":[{"input":1}]}`, 400, "bad request: batch: only a DRAFT can be changed, this one is FINALIZED"},
		"deleting when it runs":   {"DELETE", "/batch/{final}/requests/{req}", ``, 400, "bad request: batch: only a DRAFT can be changed, this one is FINALIZED"},
		"finalizing twice":        {"POST", "/batch/{final}/finalize", ``, 400, "bad request: batch: only a DRAFT can be changed, this one is FINALIZED"},
		"an unknown batch":        {"GET", "/batch/batch_0", ``, 404, "batch not found"},
		"an unknown request":      {"DELETE", "/batch/{draft}/requests/x", ``, 404, "job not found"},
		"an offset of letters":    {"GET", "/batch/{draft}/requests?offset=x", ``, 400, "bad request: offset: not a number"},
		"a limit of letters":      {"GET", "/batch/{draft}/requests?limit=x", ``, 400, "bad request: limit: not a number"},
		"a name of no text":       {"PUT", "/batch/{draft}", `{"name":1}`, 400, "bad request: name: cannot be a JSON number"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulator.Options{})
			draft, final := r.newBatch(1), r.newBatch(1)
			r.ok("POST", "/v2/local/batch/"+final+"/finalize", "")
			path := strings.NewReplacer("{draft}", draft, "{final}", final, "{req}", r.results(final).Requests[0].ID).Replace(row.path)
			code, text := r.call(row.method, "/v2/local"+path, row.body)
			require.Equal(t, row.status, code)
			require.Equal(t, string(protocol.NewProblem(row.status, row.detail).JSON()), text)
			require.Equal(t, 1, read[batch](r, "GET", "/batch/"+draft, "").RequestTotal)
		})
	}
}

func TestBatchPages(t *testing.T) {
	r := newRig(t, emulator.Options{})
	id := r.newBatch(120)
	for query, want := range map[string][4]int{ // offset, limit, how many, whether there are more
		"": {0, 50, 50, 1}, "?offset=50": {50, 50, 50, 1}, "?offset=100": {100, 50, 20, 0}, "?offset=120": {120, 50, 0, 0},
		"?limit=120": {0, 120, 120, 0}, "?limit=0": {0, 1, 1, 1}, "?limit=99999999999999999999": {0, 1000, 120, 0}, "?offset=-1&limit=2": {0, 2, 2, 1},
	} {
		page := read[batchPage](r, "GET", "/batch/"+id+"/requests"+query, "")
		more := 0
		if page.HasMore {
			more = 1
		}
		require.Equal(t, want, [4]int{page.Offset, page.Limit, len(page.Requests), more}, query)
		require.Equal(t, 120, page.Total)
	}
}

func TestCancellingABatch(t *testing.T) {
	for name, row := range map[string]struct {
		prepare       func(*rig, string)
		before, after string // the state at once, and when the running job has ended
		want          [3]int // in progress, completed, failed, at the end
	}{
		"a draft":    {func(*rig, string) {}, "CANCELLED", "CANCELLED", [3]int{0, 0, 3}},
		"that waits": {func(r *rig, id string) { r.ok("POST", "/batch/"+id+"/finalize", "") }, "CANCELLED", "CANCELLED", [3]int{0, 0, 3}},
		"that runs":  {func(r *rig, id string) { r.ok("POST", "/batch/"+id+"/finalize", ""); r.take("w1") }, "FINALIZED", "CANCELLED", [3]int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulator.Options{TakeHold: time.Millisecond})
			id := r.newBatch(3)
			row.prepare(r, id)
			require.Equal(t, row.before, read[batch](r, "POST", "/batch/"+id+"/cancel", "").Status)
			require.Empty(t, r.take("w2"))
			if row.before == "FINALIZED" {
				require.Equal(t, 200, r.done("w1", r.results(id).Requests[0].ID, `{"output":1}`))
			}
			got := read[batch](r, "POST", "/batch/"+id+"/cancel", "")
			require.Equal(t, row.after, got.Status)
			got = read[batch](r, "GET", "/batch/"+id, "")
			require.Equal(t, row.want, [3]int{got.RequestInProgress, got.RequestCompleted, got.RequestFailed})
		})
	}
}

// The requests of a draft end with it, and what was sent is forgotten.
func TestCancellingADraftEndsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.newBatch(3)
		require.Equal(t, 3, r.Submissions())
		time.Sleep(time.Minute)
		r.ok("POST", "/batch/"+id+"/cancel", "")
		require.Zero(t, r.Submissions())
		for _, request := range r.results(id).Requests {
			require.Equal(t, "CANCELLED", request.Status)
			require.Equal(t, time.Now().UTC().Format(time.RFC3339Nano), request.CompletedAt)
		}
		got := read[batch](r, "GET", "/batch/"+id, "")
		require.Equal(t, got.RequestTotal, got.RequestCompleted+got.RequestFailed)
		code, _ := r.call("POST", "/v2/local/batch/"+id+"/finalize", "")
		require.Equal(t, 400, code)
	})
}

// full takes so many jobs, and no more.
type full struct {
	*store.Memory
	room int
}

func (f *full) Enqueue(ctx context.Context, job store.Job) (store.Job, error) {
	if f.room--; f.room < 0 {
		return store.Job{}, errors.New("no room")
	}
	return f.Memory.Enqueue(ctx, job)
}

// A batch that cannot be started whole has FAILED, and what was sent is forgotten.
func TestABatchThatFailsForgetsItsInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{OpenStore: func(string) (store.Store, error) {
			return &full{store.NewMemory(time.Now), 1}, nil
		}})
		id := r.newBatch(3)
		code, _ := r.call("POST", "/v2/local/batch/"+id+"/finalize", "")
		require.Equal(t, 500, code)
		require.Equal(t, "FAILED", read[batch](r, "GET", "/batch/"+id, "").Status)
		require.Zero(t, r.Submissions())
		require.Equal(t, r.results(id).Requests[0].ID, r.take("w1"), "what has a job is run")
	})
}

// However a request ends, or is lost, it counts.
func TestEndsOfBatchRequests(t *testing.T) {
	for name, row := range map[string]struct {
		end    func(r *rig, job string)
		status string
	}{
		"cancelled":        {func(r *rig, job string) { r.ok("POST", "/cancel/"+job, "") }, "CANCELLED"},
		"purged":           {func(r *rig, _ string) { r.ok("POST", "/purge-queue", "") }, "CANCELLED"},
		"past its ttl":     {func(*rig, string) { time.Sleep(25 * time.Hour) }, "CANCELLED"},
		"running too long": {func(r *rig, _ string) { r.take("w1"); time.Sleep(11 * time.Minute) }, "FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{Lease: time.Hour})
				id := r.newBatch(1)
				r.ok("POST", "/batch/"+id+"/finalize", "")
				row.end(r, r.results(id).Requests[0].ID)
				require.Equal(t, 1, read[batch](r, "GET", "/batch/"+id, "").RequestFailed)
				require.Equal(t, row.status, r.results(id).Requests[0].Status)
			})
		})
	}
}

func TestBatchesPerEndpoint(t *testing.T) {
	r := newRig(t, emulator.Options{})
	ids := make([]string, 10)
	for i := range ids {
		ids[i] = r.newBatch(0)
	}
	code, text := r.call("POST", "/v2/local/batch", `[]`)
	require.Equal(t, 400, code)
	require.Contains(t, text, "at most 10 that are not done")

	r.ok("POST", "/batch/"+ids[0]+"/finalize", "") // done at once: it is empty
	ids = append(ids, r.newBatch(2))
	r.ok("POST", "/batch/"+ids[10]+"/finalize", "")
	code, _ = r.call("POST", "/v2/local/batch", `[]`)
	require.Equal(t, 400, code)
	r.ok("POST", "/purge-queue", "") // its requests are gone, so it is done
	ids = append(ids, r.newBatch(0))

	listed := read[struct{ Batches []batch }](r, "GET", "/batch", "").Batches
	require.Len(t, listed, 12)
	for i, b := range listed {
		require.Equal(t, ids[11-i], b.ID, "the newest first")
	}
	r.ok("POST", "/batch/"+ids[11]+"/cancel", "")
	for range 200 {
		r.ok("POST", "/batch/"+r.newBatch(0)+"/cancel", "")
	}
	require.Len(t, read[struct{ Batches []batch }](r, "GET", "/batch", "").Batches, 100)
	r.ok("GET", "/batch/"+ids[1], "") // a draft is never forgotten
	code, _ = r.call("GET", "/batch/"+ids[10], "")
	require.Equal(t, 404, code, "the oldest that is done is forgotten")
}

func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		require.JSONEq(t, `{"requests":[]}`, r.ok("GET", "/v2/local/requests", ""))
		var ids []string
		for range 101 {
			ids = append(ids, r.run(`{"input":1}`))
		}
		r.take("w1")
		r.done("w1", ids[0], `{"output":"large"}`)
		count := func(query string) int {
			return len(read[struct{ Requests []struct{ ID string } }](r, "GET", "/requests"+query, "").Requests)
		}
		for query, want := range map[string]int{"": 100, "?limit=7": 7, "?limit=0": 1, "?limit=5000": 101} {
			require.Equal(t, want, count(query), query)
		}
		all := r.ok("GET", "/requests?limit=1000", "")
		require.True(t, strings.HasPrefix(all, `{"requests":[{"id":"`+ids[100]+`","status":"IN_QUEUE"},`), "the newest first")
		require.True(t, strings.HasSuffix(all, `,{"delayTime":1,"executionTime":1,"id":"`+ids[0]+`","status":"COMPLETED","workerId":"w1"}]}`), "the oldest last, without its output")
		code, text := r.call("GET", "/requests?limit=many", "")
		require.Equal(t, 400, code)
		require.Contains(t, text, "limit: not a number")
		time.Sleep(time.Hour)
		require.Equal(t, 100, count("?limit=1000"), "one whose result has expired is not listed")
	})
}

// Whatever happens to batches at the same time, each request counts once in the end.
func TestManyHandsOnBatches(t *testing.T) {
	n := newNetwork(t, emulator.Options{TakeHold: 20 * time.Millisecond})
	working, stop := context.WithCancel(t.Context())
	var workers, hands sync.WaitGroup
	for w := range 3 {
		workers.Go(func() { n.work(working, fmt.Sprintf("w%d", w), false) })
	}
	counted := func(id string) (b batch) {
		_, text, _ := n.do(t.Context(), "GET", "/batch/"+id, "")
		_ = json.Unmarshal(text, &b)
		return b
	}
	for hand := range 4 {
		hands.Go(func() {
			for round := range 10 {
				_, text, _ := n.do(t.Context(), "POST", "/batch", `[{"input":1},{"input":2},{"input":3},{"input":4}]`)
				var b batch
				_ = json.Unmarshal(text, &b)
				var calls sync.WaitGroup
				for _, path := range []string{"/finalize", "/finalize", "/requests", "/cancel"} {
					if path == "/cancel" && (hand+round)%2 == 0 {
						continue
					}
					calls.Go(func() { _, _, _ = n.do(t.Context(), "POST", "/batch/"+b.ID+path, `{"requests":[{"input":5}]}`) })
				}
				calls.Wait()
				for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
					if b = counted(b.ID); b.RequestCompleted+b.RequestFailed == b.RequestTotal {
						break
					}
				}
				if ended := b.RequestCompleted + b.RequestFailed; b.RequestInProgress != 0 || ended != b.RequestTotal {
					t.Errorf("%+v", b)
				}
			}
		})
	}
	hands.Wait()
	stop()
	workers.Wait()
}
