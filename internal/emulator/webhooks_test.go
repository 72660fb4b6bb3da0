package emulator_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/emulator/webhook"
)

// clock is a time that tests turn.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// receiver gathers the bodies of webhooks.
func receiver(t *testing.T) (url string, bodies chan string) {
	t.Helper()
	bodies = make(chan string, 10)
	return newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}) + "/hook?a=1&b", bodies
}

func newServer(t *testing.T, handle http.HandlerFunc) (url string) {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	return srv.URL
}

// LE-05, LE-06: the receiver reads the whole job, in whatever state it has ended.
func TestWebhooks(t *testing.T) {
	for name, row := range map[string]struct {
		submit, input string
		end           func(r *rig, c *clock, id string)
		before, after string // of the input, and behind it
		disputed      string
	}{
		"completed": {`{"input":{"x": 1}`, `{"x": 1}`, func(r *rig, c *clock, id string) {
			r.take("w1")
			c.pass(200 * time.Millisecond)
			r.done("w1", id, `{"output":{"b":[1e2]}}`)
		}, `"delayTime":1500,"executionTime":200,`, `"output":{"b":[1e2]},"status":"COMPLETED"`, ""},
		"completed with nothing": {`{"input":{}`, `{}`, func(r *rig, _ *clock, id string) {
			r.take("w1")
			r.done("w1", id, `{}`)
		}, `"delayTime":1500,"executionTime":1,`, `"status":"COMPLETED"`, ""},
		"failed": {`{"input":"<é>"`, `"<é>"`, func(r *rig, c *clock, id string) {
			r.take("w1")
			c.pass(time.Second)
			r.done("w1", id, `{"error":"boom"}`)
		}, `"delayTime":1500,"error":"boom","executionTime":1000,`, `"status":"FAILED"`, ""},
		"cancelled while it waits": {`{"input":1`, `1`, func(r *rig, _ *clock, id string) {
			r.ok("POST", "/cancel/"+id, "")
		}, ``, `"status":"CANCELLED"`, ""},
		"cancelled while it runs": {`{"input":1`, `1`, func(r *rig, c *clock, id string) {
			r.take("w1")
			c.pass(time.Second)
			r.ok("POST", "/cancel/"+id, "")
		}, `"delayTime":1500,"executionTime":1000,`, `"status":"CANCELLED"`, ""},
		"took too long": {`{"input":1,"policy":{"executionTimeout":5000}`, `1`, func(r *rig, c *clock, id string) {
			r.take("w1")
			c.pass(5 * time.Second)
		}, `"delayTime":1500,"error":"executionTimeout exceeded","executionTime":5000,`, `"status":"FAILED"`, ""},
		"its workers fell silent": {`{"input":1`, `1`, func(r *rig, c *clock, id string) {
			r.take("w1")
			c.pass(40 * time.Second)
			require.Eventually(r.t, func() bool { return r.take("w2") == id }, time.Minute, time.Millisecond)
			c.pass(40 * time.Second)
		}, `"delayTime":41500,"error":"job timed out after 1 retries","executionTime":40000,`, `"retries":1,"status":"FAILED"`, ""},
		"timed out": {`{"input":1,"policy":{"ttl":10000}`, `1`, func(_ *rig, c *clock, _ string) {
			c.pass(10 * time.Second)
		}, `"error":"ttl exceeded",`, `"status":"TIMED_OUT"`, "ttl=TIMED_OUT"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			o := emulator.Options{
				Now: c.now, SweepEvery: time.Millisecond, TakeHold: time.Millisecond,
				Webhooks: webhook.Options{AllowPrivate: true},
			}
			if row.disputed != "" {
				require.NoError(t, o.Disputed.Set(row.disputed))
			}
			r := newRig(t, o)
			url, bodies := receiver(t)
			id := r.run(row.submit + `,"webhook":"` + url + `"}`)
			c.pass(1500 * time.Millisecond)
			row.end(r, c, id)
			body := <-bodies
			require.Equal(t, `{`+row.before+`"id":"`+id+`","input":`+row.input+`,`+row.after+`,"webhook":"`+url+`"}`, body)
			require.True(t, json.Valid([]byte(body)))
			require.Empty(t, bodies)
		})
	}
}

// A webhook that cannot be delivered changes nothing about its job.
func TestADeadReceiverDoesNotHurtTheJob(t *testing.T) {
	r := newRig(t, emulator.Options{Webhooks: webhook.Options{Gaps: []time.Duration{}}})
	id := r.run(`{"input":1,"webhook":"http://127.0.0.1:1/"}`)
	r.take("w1")
	require.Equal(t, 200, r.done("w1", id, `{"output":1}`))
	require.Contains(t, r.status(id), `"status":"COMPLETED"`)
}

// A second run of a failed job has news of its own; a webhook inside the input is none.
func TestWebhookOfARetry(t *testing.T) {
	r := newRig(t, emulator.Options{Webhooks: webhook.Options{AllowPrivate: true}})
	url, bodies := receiver(t)
	id := r.run(`{"input":{"webhook":"http://127.0.0.1:1/"},"webhook":"` + url + `"}`)
	r.take("w1")
	r.done("w1", id, `{"error":"boom"}`)
	require.Contains(t, <-bodies, `"FAILED"`)
	r.ok("POST", "/retry/"+id, "")
	r.take("w1")
	r.done("w1", id, `{"output":1}`)
	require.Contains(t, <-bodies, `"COMPLETED"`)
}
