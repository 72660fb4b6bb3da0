package emulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// openai makes a call, lets w1 take its job, and returns what the job is and the answer to come.
func (r *rig) openai(ctx context.Context, method, path, body string) (job string, answer chan [2]string) {
	answer = make(chan [2]string, 1)
	go func() {
		code, text, err := r.try(ctx, method, path, body)
		if err != nil {
			text = err.Error()
		}
		answer <- [2]string{http.StatusText(code), text}
	}()
	synctest.Wait()
	return r.ok("GET", "/v2/local/job-take/w1?", ""), answer
}

func (r *rig) chunk(job, item string) {
	r.t.Helper()
	r.ok("POST", "/v2/local/job-stream/w1/"+job+"?isStream=false", `{"output":`+item+`}`)
}

func TestOpenAIJobs(t *testing.T) {
	for name, row := range map[string]struct{ method, path, body, input string }{
		"a request":     {"POST", "/v2/local/openai/v1/chat/completions", `{"model":"m", "n":1.0}`, `{"openai_route":"/v1/chat/completions","openai_input":{"model":"m", "n":1.0}}`},
		"at the root":   {"POST", "/openai/v1/completions", `{}`, `{"openai_route":"/v1/completions","openai_input":{}}`},
		"without body":  {"GET", "/v2/local/openai/v1/models", ``, `{"openai_route":"/v1/models"}`},
		"deleting":      {"DELETE", "/v2/local/openai/v1/files/f1", ``, `{"openai_route":"/v1/files/f1"}`},
		"with a query":  {"GET", "/v2/local/openai/v1/files?limit=1", ``, `{"openai_route":"/v1/files"}`},
		"a quoted name": {"GET", "/v2/local/openai/v1/models/a%22b", ``, `{"openai_route":"/v1/models/a\"b"}`},
		"an escaped /":  {"GET", "/v2/local/openai/v1/models/a%2Fb%25", ``, `{"openai_route":"/v1/models/a/b%"}`},
		"a base with /": {"GET", "/v2/local/openai/v1//models/", ``, `{"openai_route":"/v1/models"}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{})
				job, answer := r.openai(t.Context(), row.method, row.path, row.body)
				require.Regexp(t, `^{"id":"sync-`+uuid+`-u1"`, job)
				require.Contains(t, job, `,"input":`+row.input+`}`)
				r.done("w1", idOf(t, job), `{"output":{"ok":true}}`)
				require.Equal(t, [2]string{"OK", `{"ok":true}`}, <-answer)
			})
		})
	}
}

func TestOpenAIRefusals(t *testing.T) {
	for name, row := range map[string]struct{ body, detail string }{
		"no JSON":           {`{"model":`, "body: unexpected end of JSON input"},
		"no object":         {`[1]`, "body: cannot be a JSON array"},
		"stream of no bool": {`{"stream":"yes"}`, "stream: cannot be a JSON string"},
		"too large":         {`{"prompt":"` + strings.Repeat("x", 1000) + `"}`, "exceeded max body size of 1000B"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, emulator.Options{MaxRunSync: 1000})
			code, text := r.call("POST", "/v2/local/openai/v1/completions", row.body)
			require.Equal(t, http.StatusBadRequest, code)
			require.Contains(t, text, row.detail)
			require.Contains(t, r.ok("GET", "/health", ""), `"inQueue":0`)
		})
	}
}

func TestOpenAIAnswers(t *testing.T) {
	const plain, stream = `{"model":"m"}`, `{"model":"m","stream":true}`
	failure := func(message string) string {
		return `{"error":{"message":"` + message + `","type":"server_error","param":null,"code":null}}`
	}
	for name, row := range map[string]struct {
		body         string
		chunks       []string
		done         string // the report on the job; empty: it is cancelled
		status, want string
	}{
		"a value":                         {plain, []string{`{"id":1}`, `{"id":2}`}, `{"output":[]}`, "OK", `{"id":1}`},
		"JSON text":                       {plain, []string{`"{\"id\": 1}"`}, `{"output":[]}`, "OK", `{"id": 1}`},
		"text that is no JSON":            {plain, []string{`"hello"`}, `{"output":[]}`, "OK", `"hello"`},
		"an output":                       {plain, nil, `{"output":{"id":1}}`, "OK", `{"id":1}`},
		"an output of JSON text":          {plain, nil, `{"output":"{\"id\":1}"}`, "OK", `{"id":1}`},
		"no output":                       {plain, nil, `{}`, "OK", `null`},
		"an error object of the worker":   {plain, []string{`{"object":"error","code":404}`}, `{"output":[]}`, "OK", `{"object":"error","code":404}`},
		"a failure":                       {plain, nil, `{"error":"out of \"memory\""}`, "Internal Server Error", failure(`out of \"memory\"`)},
		"a failure after the answer":      {plain, []string{`{"id":1}`}, `{"error":"late"}`, "OK", `{"id":1}`},
		"a cancelled job":                 {plain, nil, ``, "Internal Server Error", failure("the job was cancelled")},
		"events":                          {stream, []string{`"data: 1\n\n"`, `"data: 2\n\ndata: [DONE]\n\n"`}, `{"output":[]}`, "OK", "data: 1\n\ndata: 2\n\ndata: [DONE]\n\n"},
		"events and their aggregate":      {stream, []string{`"data: 1\n\n"`}, `{"output":["data: 1\n\n"]}`, "OK", "data: 1\n\n"},
		"a value in place of events":      {stream, []string{"{\"object\":\n\"error\"}"}, `{"output":[]}`, "OK", "data: {\"object\":\"error\"}\n\n"},
		"an output in place of events":    {stream, nil, `{"output":{"id":1}}`, "OK", "data: {\"id\":1}\n\n"},
		"a failure before the first":      {stream, nil, `{"error":"boom"}`, "Internal Server Error", failure("boom")},
		"a failure amid events":           {stream, []string{`"data: 1\n\n"`}, `{"error":"boom"}`, "OK", "data: 1\n\ndata: " + failure("boom") + "\n\n"},
		"a cancelled job amid its events": {stream, []string{`"data: 1\n\n"`}, ``, "OK", "data: 1\n\ndata: " + failure("the job was cancelled") + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{})
				object, answer := r.openai(t.Context(), "POST", "/v2/local/openai/v1/chat/completions", row.body)
				job := idOf(t, object)
				for _, item := range row.chunks {
					r.chunk(job, item)
				}
				if row.done == "" {
					r.ok("POST", "/v2/local/cancel/"+job, "")
				} else {
					require.Equal(t, 200, r.done("w1", job, row.done))
				}
				require.Equal(t, [2]string{row.status, row.want}, <-answer)
			})
		})
	}
}

func TestOpenAIWaits(t *testing.T) {
	for name, row := range map[string]struct {
		chunks int // one a minute
		want   [2]string
	}{
		"for the first":     {0, [2]string{"Gateway Timeout", `{"error":{"message":"no word from the job for 5m0s","type":"server_error","param":null,"code":null}}`}},
		"from word to word": {9, [2]string{"OK", strings.Repeat("data: 1\n\n", 9) + "data: {\"error\":{\"message\":\"no word from the job for 5m0s\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n"}},
		"for the second":    {1, [2]string{"OK", "data: 1\n\ndata: {\"error\":{\"message\":\"no word from the job for 5m0s\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{Lease: time.Hour, Execution: time.Hour})
				start := time.Now()
				object, answer := r.openai(t.Context(), "POST", "/v2/local/openai/v1/completions", `{"stream":true}`)
				for range row.chunks {
					time.Sleep(time.Minute)
					r.chunk(idOf(t, object), `"data: 1\n\n"`)
				}
				require.Equal(t, row.want, <-answer)
				require.Equal(t, time.Duration(row.chunks+5)*time.Minute, time.Since(start))
				require.Contains(t, r.status(idOf(t, object)), `"CANCELLED"`)
				require.Contains(t, r.ok("GET", "/job-stop/w1?", ""), idOf(t, object))
			})
		})
	}
}

func TestOpenAICallerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		ctx, leave := context.WithCancel(t.Context())
		object, answer := r.openai(ctx, "POST", "/v2/local/openai/v1/completions", `{}`)
		leave()
		<-answer
		synctest.Wait()
		require.Contains(t, r.status(idOf(t, object)), `"CANCELLED"`)
		require.Contains(t, r.ok("GET", "/job-stop/w1?", ""), idOf(t, object))
	})
}

func TestOpenAIJobIsPurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		answer := make(chan int, 1)
		go func() { code, _ := r.call("POST", "/openai/v1/completions", `{}`); answer <- code }()
		synctest.Wait()
		r.ok("POST", "/purge-queue", "")
		require.Equal(t, http.StatusNotFound, <-answer)
	})
}

// Over a network each event is there when it was yielded, and one that is read no more ends its job.
func TestOpenAIStreamIsLive(t *testing.T) {
	n := newNetwork(t, emulator.Options{})
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url+"/openai/v1/completions", strings.NewReader(`{"stream":true}`))
	require.NoError(t, err)
	answer := make(chan *http.Response, 1)
	go func() {
		res, err := n.client.Do(req)
		if err == nil {
			answer <- res
		}
		close(answer)
	}()
	code, object, err := n.do(t.Context(), "GET", "/job-take/w1?", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)
	job := idOf(t, string(object))

	var res *http.Response
	for _, text := range []string{"data: 1\n\n", "data: 2\n\n"} {
		_, _, err = n.do(t.Context(), "POST", "/job-stream/w1/"+job+"?", `{"output":`+quote(text)+`}`)
		require.NoError(t, err)
		if res == nil {
			res = <-answer
			require.NotNil(t, res)
			require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		}
		got := make([]byte, len(text))
		_, err = io.ReadFull(res.Body, got)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	leave()
	_ = res.Body.Close()
	_, stops, err := n.do(t.Context(), "GET", "/job-stop/w1?", "")
	require.NoError(t, err)
	require.JSONEq(t, `{"jobsToStop":["`+job+`"]}`, string(stops))
}

// Who waits while the server stops is told so at once, in the words that its client knows.
func TestOpenAICallsEndWithTheServer(t *testing.T) {
	const said = `{"error":{"message":"the server is stopping; the job has not ended","type":"server_error","param":null,"code":null}}`
	for name, tt := range map[string]struct{ body, item, want string }{
		"a document":             {`{}`, "", "503 " + said},
		"a stream without words": {`{"stream":true}`, "", "503 " + said},
		"a stream that has some": {`{"stream":true}`, "data: 1\n\n", "200 data: 1\n\ndata: " + said + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, emulator.Options{})
				answer := make(chan string, 1)
				go func() {
					code, text := r.call("POST", "/openai/v1/completions", tt.body)
					answer <- fmt.Sprint(code, " ", text)
				}()
				synctest.Wait()
				job := r.take("w1")
				if tt.item != "" {
					r.ok("POST", "/v2/local/job-stream/w1/"+job+"?", `{"output":`+quote(tt.item)+`}`)
				}
				synctest.Wait()
				start := time.Now()
				require.NoError(t, r.Close())
				require.Equal(t, tt.want, <-answer)
				require.Zero(t, time.Since(start))
			})
		})
	}
}

// evicting ends other jobs, which room is made for, between the wait for a job and the read of what it yields.
type evicting struct {
	*store.Memory
	others int
}

func (e *evicting) Wait(ctx context.Context, id string, until store.Until, wait time.Duration) (store.Job, error) {
	job, err := e.Memory.Wait(ctx, id, until, wait)
	for range 2 {
		e.others++
		other := store.Job{ID: fmt.Sprint(e.others), Policy: store.Policy{TTL: time.Hour, Retention: time.Hour}}
		if _, err := e.Enqueue(ctx, other); err != nil {
			return job, err
		}
		if _, err := e.Finish(ctx, other.ID, "", store.End{Status: protocol.Completed}); err != nil {
			return job, err
		}
	}
	return job, err
}

// However little room there is, the job of a call that waits for its answer is not deleted for others.
func TestOpenAIJobIsNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := store.NewMemory(time.Now)
		memory.RetainBytes = 1
		r := newRig(t, emulator.Options{OpenStore: func(string) (store.Store, error) { return &evicting{Memory: memory}, nil }})
		got := make(chan string, 1)
		go func() { _, text := r.call("POST", "/v2/local/openai/v1/completions", `{"stream":true}`); got <- text }()
		synctest.Wait()
		id := r.take("w1")
		require.Equal(t, 200, r.done("w1", id, `{"output":"data: 1\n\n"}`))
		text := <-got
		require.Contains(t, text, "data: 1")
		require.NotContains(t, text, "job not found")
	})
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

// compact is text without the blanks between its tokens; a number that no float holds stays as it is written.
func compact(t *testing.T, text string) string {
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, []byte(text)))
	return b.String()
}

// Whatever is sent and yielded, the job's input and a document are JSON, and an event is one event.
func FuzzOpenAI(f *testing.F) {
	for _, s := range []string{`{"model":"m"}`, `{"stream":true}`, `null`, ` [1]`, `"data: 1\n\n"`, `"{\"a\":1}"`, "{\"a\":\n\n1}", `1e400`, ``} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if input, err := emulator.OpenAIInput(text); err == nil {
			require.True(t, json.Valid(input), "%s", input)
			require.Contains(t, string(input), strings.ToValidUTF8(text, "\uFFFD"))
		}
		text = strings.Trim(text, " \t\r\n")
		if !json.Valid([]byte(text)) {
			return
		}
		require.True(t, json.Valid([]byte(emulator.OpenAIAnswer(json.RawMessage(text), false))))
		if event := emulator.OpenAIAnswer(json.RawMessage(text), true); text[0] != '"' {
			data, found := strings.CutPrefix(event, "data: ")
			require.True(t, found)
			require.Equal(t, compact(t, text), compact(t, strings.TrimSuffix(data, "\n\n")))
			require.NotContains(t, strings.TrimSuffix(event, "\n\n"), "\n")
		}
	})
}
