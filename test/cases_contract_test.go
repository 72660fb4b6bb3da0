package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// HC-05: results that are no objects reach the platform.
func TestHC05ResultsOfAnyType(t *testing.T) {
	t.Parallel()
	w := runWorker(t, apidouble.New(t), "value.py", nil)
	for i, value := range append([]string{`[1,2]`, `7`, `"text"`, `true`}, falsy...) {
		id := fmt.Sprint("j", i)
		w.Offer(`{"id":"` + id + `","input":{"value":` + value + `}}`)
		r := w.result(t, id)
		require.Empty(t, r.Error, value)
		requireValue(t, value, r.Output)
	}
}

// HC-06: what an "error" key means does not depend on the kind of handler. An empty one means nothing, as
// with the SDK.
func TestHC06ErrorConventions(t *testing.T) {
	t.Parallel()
	rows := []struct{ value, wantError, wantDetail string }{
		{value: `{"error":{"code":7}}`, wantError: `{"code":7}`},
		{value: `{"error":"x","output":{"detail":1}}`, wantError: `x`, wantDetail: `"detail":1`},
		{value: `{"error":""}`},
		{value: `{"error":null}`},
		{value: `{"error":[]}`},
	}
	for name, row := range map[string]struct{ file, input string }{
		"plain":     {"value.py", `{"value":%s}`},
		"generator": {"values.py", `{"values":[%s]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runWorker(t, apidouble.New(t), row.file, nil)
			for i, want := range rows {
				id := fmt.Sprint("j", i)
				w.Offer(`{"id":"` + id + `","input":` + fmt.Sprintf(row.input, want.value) + `}`)
				r := w.result(t, id)
				if want.wantError == "" {
					require.Empty(t, r.Error, want.value)
					if name == "plain" { // what else the dict holds, which is nothing
						require.Equal(t, `{}`, string(r.Output), want.value)
					}
					continue
				}
				require.Equal(t, want.wantError, compact(r.errorText(t)), want.value)
				if name == "plain" { // a stream has posted the details already
					require.Contains(t, string(r.Output), want.wantDetail)
				}
			}
		})
	}
}

// compact takes the blanks out of JSON and leaves other text alone.
func compact(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(b)
}

// HC-07: an error item ends the stream, shows in it, fails the job, and its other keys count.
func TestHC07ErrorInsideAStream(t *testing.T) {
	t.Parallel()
	w := runWorker(t, apidouble.New(t), "values.py", nil)
	after := filepath.Join(t.TempDir(), "after")
	w.Offer(`{"id":"j1","input":{"values":["a",{"error":"bad","refresh_worker":true,"code":9},"never"],"after":` +
		strconv.Quote(after) + `}}`)
	r := w.result(t, "j1")
	require.Equal(t, "bad", r.errorText(t))
	require.True(t, r.StopPod)

	chunks := w.Calls(apidouble.Stream)
	require.Len(t, chunks, 2)
	require.JSONEq(t, `{"output":"a"}`, chunks[0].Body)
	require.Contains(t, chunks[1].Body, `"bad"`)
	require.Contains(t, chunks[1].Body, `"code":9`)

	require.Zero(t, w.wait(t), w.stderr)
	_, err := os.Stat(after)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// HC-12: a handler sees its whole job, the unknown keys too, and who runs it.
func TestHC12HandlerKnowsItsJob(t *testing.T) {
	t.Parallel()
	const job = `{"id":"j1","input":{},"webhook":"http://example.com/","batchId":"b1","x-new":{"a":1}}`
	w := runWorker(t, apidouble.New(t), "context.py", nil)
	w.Offer(job)
	got := decode[struct {
		Job              json.RawMessage
		Worker, Endpoint string
	}](t, w.result(t, "j1").Output)
	require.JSONEq(t, job, string(got.Job))
	require.Equal(t, "w1", got.Worker)
	require.Equal(t, "ep", got.Endpoint)
}

// HC-13: progress never comes after the end, and never out of order.
func TestHC13ProgressAfterTheEnd(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	d.On(apidouble.Progress, func(apidouble.Call) *apidouble.Reply {
		return &apidouble.Reply{Usual: true, Delay: rand.N(100 * time.Millisecond)}
	})
	w := runWorker(t, d, "late_progress.py", nil)
	dir := t.TempDir()
	gate, late := filepath.Join(dir, "gate"), filepath.Join(dir, "late")
	w.Offer(`{"id":"j1","input":{"gate":` + strconv.Quote(gate) + `,"late":` + strconv.Quote(late) + `}}`)
	eventually(t, func() bool { return len(w.Calls(apidouble.Progress)) > 0 }, "no progress")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Equal(t, `"done"`, string(w.result(t, "j1").Output))
	eventually(t, func() bool { _, err := os.Stat(late); return err == nil }, "no late progress call")
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr) // whatever was still to be posted has been

	end := w.results("j1")[0].At
	last := -1
	for _, post := range w.Calls(apidouble.Progress) {
		require.True(t, post.At.Before(end), "progress after the result: %s", post.Body)
		step := decode[struct{ Output int }](t, post.Body).Output
		require.Greater(t, step, last)
		last = step
	}
}

// A program that sees to its own --test_input, or finds its own arguments wrong, decides about the exit code.
func TestRunOfAProgramWithArgumentsOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args []string
		code int
	}{
		"its own job":         {[]string{"--test_input", `{"input":{"value":1}}`}, 0},
		"its own local API":   {[]string{"--rp_serve_api"}, 2},
		"its own job, failed": {[]string{"--test_input", `{"input":{"value":{"error":"x"}}}`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{binary(t), "run", "--", python(t), handler(t, "value.py")}, row.args...)
			p := runToEnd(t, command{args: args, env: environment(apidouble.New(t), "w1"), dir: t.TempDir()})
			require.Equal(t, row.code, p.wait(t), p.stderr)
		})
	}
}
