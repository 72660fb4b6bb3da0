package emulator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
)

func TestDisputed_Set(t *testing.T) {
	for text, problem := range map[string]string{
		"empty-input=keep": "", "empty-input=omit": "", "ttl=timed_out": "", "lost-worker=TIMED_OUT": "",
		"ttl":         `ttl: "" is neither delete nor TIMED_OUT`,
		"ttl=gone":    `ttl: "gone" is neither delete nor TIMED_OUT`,
		"tll=delete":  `"tll" is none of empty-input, execution-timeout, lost-worker, ttl, late-progress, refused-result`,
		"":            `"" is none of`,
		"empty-input": `neither omit nor keep`,
	} {
		var d emulator.Disputed
		err := d.Set(text)
		if problem == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, problem, text)
		}
	}
	var d emulator.Disputed
	require.NoError(t, d.Set("empty-input=keep"))
	require.True(t, d.KeepEmptyInput)
	require.NoError(t, d.Set("empty-input=omit"))
	require.Zero(t, d)
}

// Each switch in both positions: what a client reads in the end.
func TestDisputed(t *testing.T) {
	taken := func(r *rig, body string) string {
		id := r.run(body)
		require.Equal(r.t, id, r.take("w1"))
		return id
	}
	for name, row := range map[string]struct {
		story func(r *rig) (seen string)
		want  [2]string // in the default position and in the other
	}{
		"empty-input=keep": {func(r *rig) string {
			r.run(`{"input":{ }}`)
			return r.ok("GET", "/job-take/w1?", "")
		}, [2]string{`^{"id":"[^"]+"}$`, `^{"id":"[^"]+","input":{ }}$`}},
		"execution-timeout=TIMED_OUT": {func(r *rig) string {
			id := taken(r, `{"input":1,"policy":{"executionTimeout":5000}}`)
			time.Sleep(7 * time.Second)
			return r.status(id)
		}, [2]string{`"error":"executionTimeout exceeded",.*"status":"FAILED"`, `"error":"executionTimeout exceeded",.*"status":"TIMED_OUT"`}},
		"lost-worker=TIMED_OUT": {func(r *rig) string {
			id := taken(r, `{"input":1}`)
			time.Sleep(42 * time.Second)
			require.Equal(r.t, id, r.take("w2"))
			time.Sleep(42 * time.Second)
			return r.status(id)
		}, [2]string{`"error":"job timed out after 1 retries",.*"status":"FAILED"`, `"error":"job timed out after 1 retries",.*"status":"TIMED_OUT"`}},
		"ttl=TIMED_OUT": {func(r *rig) string {
			id := r.run(`{"input":1,"policy":{"ttl":10000}}`)
			time.Sleep(12 * time.Second)
			require.Empty(r.t, r.take("w1"))
			_, answer := r.call("GET", "/v2/local/status/"+id, "")
			return answer
		}, [2]string{`^{"status":404`, `^{"error":"ttl exceeded","id":"[^"]+","status":"TIMED_OUT"}$`}},
		"late-progress=overwrite": {func(r *rig) string {
			id := taken(r, `{"input":1}`)
			r.done("w1", id, `{"output":1}`)
			r.done("w1", id, `{"status":"IN_PROGRESS","output":"late"}`)
			return r.status(id)
		}, [2]string{`"output":1,"status":"COMPLETED"`, `"output":"late","status":"IN_PROGRESS"`}},
		"refused-result=complete": {func(r *rig) string {
			id := taken(r, `{"input":1}`)
			require.Equal(r.t, 400, r.done("w1", id, `{"error":1}`))
			return r.status(id)
		}, [2]string{`"status":"IN_PROGRESS"`, `^{"delayTime":1,"executionTime":1,"id":"[^"]+","status":"COMPLETED","workerId":"w1"}$`}},
	} {
		t.Run(name, func(t *testing.T) {
			for position, want := range row.want {
				synctest.Test(t, func(t *testing.T) {
					var o emulator.Options
					if position == 1 {
						require.NoError(t, o.Disputed.Set(name))
					}
					require.Regexp(t, want, row.story(newRig(t, o)))
				})
			}
		})
	}
}

func TestStatusSetsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{})
		id := r.run(`{"input":1,"policy":{"ttl":10000}}`)
		time.Sleep(9 * time.Second)
		require.Equal(t, `{"id":"`+id+`","status":"IN_QUEUE"}`, r.ok("GET", "/v2/local/status/"+id+"?ttl=6000", ""))
		time.Sleep(6*time.Second - 1)
		r.status(id)
		time.Sleep(2 * time.Nanosecond)
		code, _ := r.call("GET", "/v2/local/status/"+id, "")
		require.Equal(t, 404, code)
		for _, ttl := range []string{"0", "-1", "604800001", "99999999999999999999"} {
			code, answer := r.call("GET", "/v2/local/status/"+id+"?ttl="+ttl, "")
			require.Equal(t, 400, code)
			require.Contains(t, answer, "bad request: ttl: must be between 1 and 604800000 milliseconds")
		}
	})
}

// A day passes in an instant: the clock is the test's.
func TestADayInAMillisecond(t *testing.T) {
	c := newClock()
	r := newRig(t, emulator.Options{Now: c.now, SweepEvery: time.Millisecond})
	id := r.run(`{"input":1}`)
	c.pass(24*time.Hour - 1)
	r.status(id)
	c.pass(1)
	code, _ := r.call("GET", "/v2/local/status/"+id, "")
	require.Equal(t, 404, code)
	require.Eventually(t, func() bool {
		return strings.Contains(r.ok("GET", "/health", ""), `"inQueue":0`)
	}, time.Minute, time.Millisecond)
}
