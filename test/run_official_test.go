package test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// doors are the two ways into a program: the worker's own runpod module, and loopback HTTP for the installed SDK.
var doors = map[string][]string{"shim": {}, "gateway": {"--no-shim"}}

// runThrough starts run with a handler file and flags of its own behind one of the doors.
func runThrough(t *testing.T, door, env []string, file string, own ...string) *worker {
	t.Helper()
	args := append(append(append([]string{}, door...), "--", python(t), "-u", handler(t, file)), own...)
	return runCommand(t, apidouble.New(t), env, args...)
}

// The same handler, unmodified, does the same with the official package as with the worker's own.
func TestRunOfAMockWorker(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, door, nil, "mock.py")
			job := func(id, input string) result {
				t.Helper()
				w.Offer(`{"id":"` + id + `","input":` + input + `}`)
				return w.result(t, id)
			}
			require.JSONEq(t, `{"a":[1,"ü"]}`, string(job("value", `{"mock_return":{"a":[1,"ü"]},"mock_delay":0.2}`).Output))

			failed := decode[map[string]string](t, job("error", `{"mock_error":"as told"}`).errorText(t))
			require.Equal(t, "as told", failed["error_message"])
			require.Equal(t, "<class 'RuntimeError'>", failed["error_type"])
			require.Equal(t, "w1", failed["worker_id"])
			require.Equal(t, "handed back", job("external", `{"mock_external":{"error_job_return":"handed back"}}`).errorText(t))

			require.Equal(t, `"done"`, string(job("progress", `{"mock_return":"done","mock_progress":{"updates":["half"],"wait_time":0.5}}`).Output))
			news := w.Posts(apidouble.Progress, "progress")
			require.Len(t, news, 1)
			require.JSONEq(t, `{"status":"IN_PROGRESS","output":"half"}`, news[0].Body)

			require.Contains(t, job("crash", `{"mock_crash":true}`).errorText(t), "exit code 1")
			require.Equal(t, `"again"`, string(job("after", `{"mock_return":"again"}`).Output))

			last := job("refresh", `{"mock_return":1,"mock_refresh":true}`)
			require.True(t, last.StopPod)
			require.JSONEq(t, `{"result":1}`, string(last.Output))
			require.Zero(t, w.wait(t), w.stderr)
		})
	}
}

// Generators stream, and their results hold the items only where they are asked to.
func TestRunOfAMockGenerator(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		for _, row := range []struct {
			own    []string
			output string
		}{
			{[]string{"--generator"}, `[]`},
			{[]string{"--async_generator", "--return_aggregate_stream"}, `["a",{"b":2}]`},
		} {
			t.Run(name+fmt.Sprint(row.own), func(t *testing.T) {
				t.Parallel()
				w := runThrough(t, door, nil, "mock.py", row.own...)
				w.Offer(`{"id":"j1","input":{"mock_return":["a",{"b":2}],"mock_delay":0.1}}`)
				require.JSONEq(t, row.output, string(w.result(t, "j1").Output))
				items := w.Posts(apidouble.Stream, "j1")
				require.Len(t, items, 2)
				require.JSONEq(t, `{"output":"a"}`, items[0].Body)
				require.JSONEq(t, `{"output":{"b":2}}`, items[1].Body)

				w.Offer(`{"id":"j2","input":{"mock_error":"as told"}}`)
				require.Contains(t, w.result(t, "j2").errorText(t), "as told")
			})
		}
	}
}

// Several jobs run at once behind either door: none of them ends before all have met.
func TestRunOfSeveralJobsAtOnce(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, append([]string{"--concurrency", "3"}, door...), []string{"CONCURRENCY_MODIFIER=3"}, "meet_async.py")
			dir := strconv.Quote(t.TempDir())
			for _, id := range []string{"a", "b", "c"} {
				w.Offer(`{"id":"` + id + `","input":{"dir":` + dir + `,"jobs":3}}`)
			}
			for _, id := range []string{"a", "b", "c"} {
				require.Equal(t, `"met"`, string(w.result(t, id).Output))
			}
		})
	}
}
