package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/protocol"
)

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

func TestAJobFromRunToResult(t *testing.T) {
	for _, base := range []string{"/v2/local", ""} {
		t.Run("under "+base, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{})
				answer := r.ok("POST", base+"/run", `{"input":{"a": 1.0}}`)
				require.Regexp(t, `^{"id":"`+uuid+`-u1","status":"IN_QUEUE"}$`, answer)
				id := idOf(t, answer)
				require.Equal(t, answer, r.ok("GET", base+"/status/"+id, ""))

				time.Sleep(1200 * time.Millisecond)
				require.Equal(t, `{"id":"`+id+`","input":{"a": 1.0}}`, r.ok("GET", base+"/job-take/w1?job_in_progress=0", ""))
				require.Equal(t, `{"delayTime":1200,"id":"`+id+`","status":"IN_PROGRESS","workerId":"w1"}`, r.status(id))

				require.Equal(t, `{}`, r.ok("POST", base+"/job-done/w1/"+id+"?isStream=false", `{"status":"IN_PROGRESS","output":"50%"}`))
				require.Equal(t, `{"delayTime":1200,"id":"`+id+`","output":"50%","status":"IN_PROGRESS","workerId":"w1"}`, r.status(id))

				time.Sleep(300 * time.Millisecond)
				r.ok("POST", base+"/job-done/w1/"+id+"?isStream=false", `{"output":{"b":[1e2]}}`)
				want := `{"delayTime":1200,"executionTime":300,"id":"` + id + `","output":{"b":[1e2]},"status":"COMPLETED","workerId":"w1"}`
				require.Equal(t, want, r.status(id))
				require.Equal(t, want, r.ok("POST", base+"/status/"+id, ""))
				require.Equal(t, want, r.ok("GET", base+"/status-sync/"+id, ""))

				require.Equal(t, 200, r.done("w1", id, `{"status":"IN_PROGRESS","output":"late"}`))
				require.Equal(t, 404, r.done("w1", id, `{"output":"again"}`))
				require.Equal(t, want, r.status(id))
			})
		})
	}
}

// Whatever JSON value a handler returns is the output, byte for byte.
func TestOutputs(t *testing.T) {
	for body, output := range map[string]string{
		`{"output":null}`: `"output":null,`, `{"output":{}}`: `"output":{},`, `{"output":[]}`: `"output":[],`,
		`{"output":""}`: `"output":"",`, `{"output":0}`: `"output":0,`, `{"output":false}`: `"output":false,`,
		`{"output":"<&>é\u00e9"}`: `"output":"<&>é\u00e9",`, `{"output":1.50}`: `"output":1.50,`, `{}`: ``,
	} {
		t.Run(body, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{})
				got := make(chan string, 1)
				go func() { _, text := r.call("POST", "/v2/local/runsync", `{"input":{}}`); got <- text }()
				synctest.Wait()
				id := r.take("w1")
				require.Regexp(t, "^sync-"+uuid+"-u1$", id)
				require.Equal(t, 200, r.done("w1", id, body))
				require.Equal(t, `{"delayTime":1,"executionTime":1,"id":"`+id+`",`+output+`"status":"COMPLETED","workerId":"w1"}`, <-got)
			})
		})
	}
}

func TestAFailureKeepsItsOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		r.take("w1")
		require.Equal(t, 400, r.done("w1", id, `{"error":{"not":"a string"}}`))
		require.Equal(t, 200, r.done("w1", id, `{"output":1,"error":"<boom>"}`))
		require.Equal(t, `{"delayTime":1,"error":"<boom>","executionTime":1,"id":"`+id+`","output":1,"status":"FAILED","workerId":"w1"}`, r.status(id))
	})
}

func TestSubmissions(t *testing.T) {
	problem := func(status int, detail string) string { return string(protocol.NewProblem(status, detail).JSON()) }
	big := func(n int) string { return `{"input":"` + strings.Repeat("x", n-len(`{"input":""}`)) + `"}` }
	for name, row := range map[string]struct {
		path, body string
		status     int
		taken      string // what the worker gets beside the id, or the refusal
	}{
		"any input":         {"/run", `{"input":"text"}`, 200, `,"input":"text"}`},
		"empty input":       {"/run", `{"input":{ }}`, 200, `}`},
		"s3 and webhook":    {"/run", `{"webhook":"https://a/?b=1&c","s3Config":{"accessId":"x"},"input":[]}`, 200, `,"input":[],"s3Config":{"accessId":"x"},"webhook":"https://a/?b=1&c"}`},
		"unknown keys":      {"/run", `{"input":1,"webhookV2":"x","id":"mine"}`, 200, `,"input":1}`},
		"policy":            {"/run", `{"input":1,"policy":{"executionTimeout":5000,"ttl":10000,"lowPriority":true}}`, 200, `,"input":1}`},
		"largest":           {"/run", big(protocol.MaxRunBody), 200, ""},
		"webhook, no URL":   {"/run", `{"input":1,"webhook":"file:///etc/passwd"}`, 400, problem(400, `bad request: webhook: must be an http or https URL, not "file"`)},
		"webhook, no text":  {"/run", `{"input":1,"webhook":1}`, 400, problem(400, "bad request: webhook: cannot be a JSON number")},
		"lowPriority":       {"/run", `{"input":1,"policy":{"lowPriority":"yes"}}`, 400, problem(400, "bad request: policy.lowPriority: cannot be a JSON string")},
		"NaN":               {"/run", `{"input":NaN}`, 400, problem(400, "bad request: body: invalid character 'N' looking for beginning of value")},
		"two documents":     {"/run", `{"input":1}{}`, 400, problem(400, "bad request: body: invalid character '{' after top-level value")},
		"no input":          {"/run", `{"prompt":1}`, 400, problem(400, "bad request: input: is missing")},
		"null input":        {"/run", `{"input":null}`, 400, problem(400, "bad request: input: is missing")},
		"no JSON":           {"/run", `{"input":`, 400, problem(400, "bad request: body: unexpected end of JSON input")},
		"no body":           {"/run", ``, 400, problem(400, "bad request: body: unexpected end of JSON input")},
		"null s3":           {"/run", `{"input":1,"s3Config":null,"webhook":null,"policy":null}`, 200, `,"input":1}`},
		"an array":          {"/run", `[1]`, 400, problem(400, "bad request: body: cannot be a JSON array")},
		"ttl as text":       {"/run", `{"input":1,"policy":{"ttl":"1h"}}`, 400, problem(400, "bad request: policy.ttl: cannot be a JSON string")},
		"short execution":   {"/run", `{"input":1,"policy":{"executionTimeout":4999}}`, 400, problem(400, "bad request: policy.executionTimeout: must be between 5000 and 604800000 milliseconds, not 4999")},
		"long ttl":          {"/run", `{"input":1,"policy":{"ttl":604800001}}`, 400, problem(400, "bad request: policy.ttl: must be between 10000 and 604800000 milliseconds, not 604800001")},
		"too large":         {"/run", big(protocol.MaxRunBody + 1), 400, problem(400, "bad request: body: exceeded max body size of 10MiB")},
		"runsync too large": {"/runsync", big(protocol.MaxRunSyncBody + 1), 400, problem(400, "bad request: body: exceeded max body size of 20MB")},
		"runsync, bad wait": {"/runsync?wait=1s", `{"input":1}`, 400, problem(400, "bad request: wait: not a number of milliseconds")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulator.Options{TakeHold: time.Millisecond})
			code, answer := r.call("POST", "/v2/local"+row.path, row.body)
			require.Equal(t, row.status, code)
			if code != 200 {
				require.Equal(t, row.taken, answer)
				require.Empty(t, r.take("w1"))
			} else if row.taken != "" {
				require.Equal(t, `{"id":"`+idOf(t, answer)+`"`+row.taken, r.ok("GET", "/job-take/w1?", ""))
			}
		})
	}
}

// A held call answers with what there is when its time is over; hosted, the wait is 1 to 300 seconds.
func TestHolds(t *testing.T) {
	for path, want := range map[string]time.Duration{
		"/runsync": 90 * time.Second, "/runsync?wait=2000": 2 * time.Second, "/runsync?wait=10": time.Second,
		"/runsync?wait=999999": 5 * time.Minute, "/runsync?wait=99999999999999999999": 5 * time.Minute, "/status-sync/$": 90 * time.Second, "/status-sync/$?wait=3000": 3 * time.Second,
		"/stream/$": 9500 * time.Millisecond, "/stream/$?wait=1500": 1500 * time.Millisecond, "/status/$": 0,
		"/job-take/w1?": 5 * time.Second, "/job-take-batch/w1?batch_size=3": 5 * time.Second, "/job-stop/w1?": 25 * time.Second,
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{})
				id := ""
				if strings.Contains(path, "$") {
					id = r.run(`{"input":1}`)
				}
				method, start := "POST", time.Now()
				if strings.HasPrefix(path, "/job-") {
					method = "GET"
				}
				code, answer := r.call(method, "/v2/local"+strings.Replace(path, "$", id, 1), `{"input":1}`)
				require.Equal(t, want, time.Since(start))
				switch {
				case method == "GET":
					require.Equal(t, http.StatusNoContent, code)
				case strings.HasPrefix(path, "/stream"):
					require.Equal(t, `{"status":"IN_QUEUE","stream":[]}`, answer)
				default:
					require.Regexp(t, `^{"id":".+","status":"IN_QUEUE"}$`, answer)
				}
			})
		})
	}
}

func TestMaxHold(t *testing.T) {
	for _, path := range []string{
		"/runsync", "/runsync?wait=300000", "/status-sync/$", "/stream/$", "/stream/$?wait=5000", "/openai/v1/models",
		"/job-take/w1?", "/job-take-batch/w1?batch_size=3", "/job-stop/w1?",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{MaxHold: 20 * time.Millisecond})
				if strings.Contains(path, "$") {
					path = strings.Replace(path, "$", r.run(`{"input":1}`), 1)
					r.take("w1")
				}
				method, start := "POST", time.Now()
				if strings.HasPrefix(path, "/job-") {
					method = "GET"
				}
				r.call(method, "/v2/local"+path, `{"input":1}`)
				require.Equal(t, 20*time.Millisecond, time.Since(start))
			})
		})
	}
}

// A stream is read live and once; the reply that says COMPLETED leaves nothing behind.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		require.Equal(t, id, r.take("w1"))
		chunk := func(item string) {
			r.ok("POST", "/v2/local/job-stream/w1/"+id+"?isStream=false", `{"output":`+item+`}`)
		}
		stream := func() string { return r.ok("GET", "/v2/local/stream/"+id, "") }

		start := time.Now()
		go func() { time.Sleep(500 * time.Millisecond); chunk(`{"n":1}`) }()
		require.Equal(t, `{"status":"IN_PROGRESS","stream":[{"output":{"n":1}}]}`, stream())
		require.Equal(t, 500*time.Millisecond, time.Since(start), "a chunk is there as soon as it came")
		chunk(`"two"`)
		chunk(`null`)
		require.Equal(t, `{"status":"IN_PROGRESS","stream":[{"output":"two"},{"output":null}]}`, stream())
		chunk(`4`)
		require.Equal(t, 200, r.done("w1", id, `{"output":[]}`))
		require.Equal(t, `{"status":"COMPLETED","stream":[{"output":4}]}`, stream())
		require.Equal(t, `{"status":"COMPLETED","stream":[]}`, stream())
		require.Contains(t, r.status(id), `"output":[]`)

		code, _ := r.call("POST", "/v2/local/job-stream/w1/"+id+"?isStream=false", `{"output":5}`)
		require.Equal(t, 404, code, "a chunk after the end")
	})
}

// Items are read once, so one who has gone takes none along.
func TestAStreamReaderHasGone(t *testing.T) {
	r := newRig(t, emulator.Options{})
	id := r.run(`{"input":1}`)
	require.Equal(t, id, r.take("w1"))
	r.ok("POST", "/v2/local/job-stream/w1/"+id+"?isStream=false", `{"output":1}`)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	_, _, err := r.try(gone, "GET", "/v2/local/stream/"+id, "")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, `{"status":"IN_PROGRESS","stream":[{"output":1}]}`, r.ok("GET", "/v2/local/stream/"+id, ""))
}

func TestStreamOfAJobThatDoesNotStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		require.Equal(t, id, r.take("w1"))
		go func() { time.Sleep(time.Second); r.done("w1", id, `{"error":"boom"}`) }()
		require.Equal(t, `{"status":"FAILED","stream":[]}`, r.ok("GET", "/stream/"+id, ""))
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		queued, running := r.run(`{"input":1}`), r.run(`{"input":2}`)
		answer := func(id string) string { return `{"id":"` + id + `","status":"CANCELLED"}` }
		require.Equal(t, answer(queued), r.ok("POST", "/v2/local/cancel/"+queued, ""))
		require.Equal(t, answer(queued), r.status(queued))
		require.Equal(t, running, r.take("w1"), "a cancelled job is not handed out")

		stops := make(chan string, 1)
		go func() { stops <- r.ok("GET", "/v2/local/job-stop/w1?gpu=X", "") }()
		time.Sleep(time.Second)
		require.Equal(t, answer(running), r.ok("POST", "/v2/local/cancel/"+running, "{}"))
		require.Equal(t, `{"jobsToStop":["`+running+`"]}`, <-stops)
		require.Equal(t, 404, r.done("w1", running, `{"output":1}`))
		require.Contains(t, r.status(running), `"status":"CANCELLED"`)
		require.Contains(t, r.status(running), `"executionTime":1000`)
		require.Equal(t, answer(running), r.ok("POST", "/v2/local/cancel/"+running, ""))
	})
}

func TestCancelOfAJobThatHasEnded(t *testing.T) {
	r := newRig(t, emulator.Options{})
	id := r.run(`{"input":1}`)
	r.take("w1")
	r.done("w1", id, `{"output":1}`)
	require.Equal(t, `{"id":"`+id+`","status":"COMPLETED"}`, r.ok("POST", "/v2/local/cancel/"+id, ""))
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1}`)
		refusal := `bad request: job: only FAILED and TIMED_OUT jobs can be retried, this one is `
		code, answer := r.call("POST", "/v2/local/retry/"+id, "")
		require.Equal(t, 400, code)
		require.Contains(t, answer, refusal+"IN_QUEUE")
		r.take("w1")
		r.done("w1", id, `{"output":1,"error":"boom"}`)
		require.Equal(t, `{"id":"`+id+`","status":"IN_QUEUE"}`, r.ok("POST", "/v2/local/retry/"+id, ""))
		require.Equal(t, `{"id":"`+id+`","status":"IN_QUEUE"}`, r.status(id))
		require.Equal(t, id, r.take("w2"))
		r.done("w2", id, `{"output":2}`)
		require.Equal(t, `{"delayTime":1,"executionTime":1,"id":"`+id+`","output":2,"status":"COMPLETED","workerId":"w2"}`, r.status(id))
	})
}

func TestPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		running, a := r.run(`{"input":1}`), r.run(`{"input":1}`)
		require.Equal(t, running, r.take("w1"))
		waiting := make(chan int, 1)
		go func() { code, _ := r.call("POST", "/v2/local/runsync", `{"input":1}`); waiting <- code }()
		synctest.Wait()
		require.Equal(t, `{"removed":2,"status":"completed"}`, r.ok("POST", "/v2/local/purge-queue", ""))
		require.Equal(t, 404, <-waiting)
		code, answer := r.call("GET", "/v2/local/status/"+a, "")
		require.Equal(t, 404, code)
		require.Equal(t, `{"status":404,"title":"Not Found","detail":"job not found"}`, answer)
		require.Equal(t, 200, r.done("w1", running, `{"output":1}`))
	})
}

func TestHealth(t *testing.T) {
	health := func(completed, failed, inProgress, inQueue, retried, idle, initializing, running, unhealthy int) string {
		return fmt.Sprintf(`{"jobs":{"completed":%d,"failed":%d,"inProgress":%d,"inQueue":%d,"retried":%d},`+
			`"workers":{"idle":%d,"initializing":%d,"ready":%d,"running":%d,"throttled":0,"unhealthy":%d}}`,
			completed, failed, inProgress, inQueue, retried, idle, initializing, idle, running, unhealthy)
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		get := func() string { return r.ok("GET", "/v2/local/health", "") }
		require.Equal(t, health(0, 0, 0, 0, 0, 0, 0, 0, 0), get())
		r.ok("GET", "/v2/local/ping/w1?runpod_version=1.12.0", "")
		require.Equal(t, health(0, 0, 0, 0, 0, 0, 1, 0, 0), get(), "it pings, but has not asked for a job")
		require.Empty(t, r.take("w1"))
		require.Equal(t, health(0, 0, 0, 0, 0, 1, 0, 0, 0), get())
		a, b := r.run(`{"input":1}`), r.run(`{"input":1}`)
		r.run(`{"input":1}`)
		r.take("w1")
		r.take("w1")
		require.Equal(t, health(0, 0, 2, 1, 0, 0, 0, 1, 0), get())
		r.done("w1", a, `{"output":1}`)
		r.done("w1", b, `{"error":"boom"}`)
		r.ok("GET", "/v2/local/ping/w2?status=unhealthy&check=c&reason=r", "")
		require.Equal(t, health(1, 1, 0, 1, 0, 1, 0, 0, 1), get())
		time.Sleep(32 * time.Second)
		require.Equal(t, health(1, 1, 0, 1, 0, 0, 0, 0, 0), get(), "nobody has been heard of for a while")
	})
}

func TestKeyAndPaths(t *testing.T) {
	r := newRig(t, emulator.Options{APIKey: "K", Endpoints: []string{"first", "second"}, TakeHold: time.Millisecond})
	problem := func(status int, detail string) string { return string(protocol.NewProblem(status, detail).JSON()) }
	for name, row := range map[string]struct {
		key, method, path string
		status            int
		answer            string
	}{
		"no key":             {"", "GET", "/v2/first/health", 401, problem(401, "no token provided")},
		"wrong key":          {"k", "GET", "/v2/first/health", 401, problem(401, "invalid api key")},
		"no key, worker":     {"", "GET", "/v2/first/job-take/w", 401, problem(401, "no token provided")},
		"right key":          {"K", "GET", "/v2/first/job-take/w", 204, ""},
		"ping needs none":    {"", "GET", "/ping", 200, `{"status":"ok"}`},
		"unknown endpoint":   {"K", "GET", "/v2/third/health", 404, problem(404, "endpoint not found")},
		"unknown, worker":    {"K", "GET", "/v2/third/job-take/w", 404, problem(404, "endpoint not found")},
		"unknown route":      {"K", "GET", "/v2/first/nothing", 404, problem(404, "no such route")},
		"realtime":           {"K", "POST", "/v2/first/realtime", 404, problem(404, "no such route")},
		"metrics":            {"K", "GET", "/v2/first/metrics", 404, problem(404, "no such route")},
		"logs":               {"K", "GET", "/v2/first/logs", 404, problem(404, "no such route")},
		"wrong method":       {"K", "GET", "/v2/first/run", 405, problem(405, "this route is not called with GET")},
		"unknown job":        {"K", "GET", "/v2/first/status/x", 404, problem(404, "job not found")},
		"doubled slash":      {"K", "GET", "/v2//first//job-take/w", 204, ""},
		"trailing slash":     {"K", "GET", "/v2/first/job-take/w/", 204, ""},
		"template without ?": {"K", "GET", "/v2/first/job-take/$RUNPOD_POD_ID&job_in_progress=0", 204, ""},
		"escaped worker":     {"K", "GET", "/v2/first/job-take/%24RUNPOD_POD_ID?", 204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r.key = row.key
			code, answer := r.call(row.method, row.path, "")
			require.Equal(t, row.status, code, answer)
			require.Equal(t, row.answer, answer)
		})
	}
	r.key = "K"
	id := idOf(t, r.ok("POST", "/v2/second/run", `{"input":1}`))
	code, _ := r.call("GET", "/v2/first/status/"+id, "")
	require.Equal(t, 404, code, "endpoints do not share their jobs")
	r.ok("GET", "/v2/second/status/"+id, "")
}

func TestNewRefusesBadEndpoints(t *testing.T) {
	for _, ids := range [][]string{{"a b"}, {""}, {"a", "a"}, {"a/b"}} {
		_, err := emulator.New(emulator.Options{Endpoints: ids})
		require.ErrorContains(t, err, "endpoint id")
	}
}

// Whatever is submitted is refused, or handed out as one valid object around the input as it was sent.
func FuzzSubmit(f *testing.F) {
	for _, s := range []string{`{"input":{"a":1}}`, `{"input":0,"webhook":"h","s3Config":{}}`, `{"input":1,"policy":{"ttl":10000}}`, `[]`, `null`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := newRig(t, emulator.Options{})
		code, answer := r.call("POST", "/run", string(body))
		if code == http.StatusBadRequest {
			return
		}
		require.Equal(t, http.StatusOK, code)
		var job struct {
			ID    string
			Input json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(r.ok("GET", "/job-take/w1?", "")), &job))
		require.Equal(t, idOf(t, answer), job.ID)
		require.Contains(t, strings.ToValidUTF8(string(body), "\uFFFD"), string(job.Input))
	})
}
