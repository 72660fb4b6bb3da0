package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// record is a line of the log as the platform reads it.
type record struct {
	RequestID *string `json:"requestId"`
	Message   string  `json:"message"`
	Level     string  `json:"level"`
}

// records are all lines that the worker and its program have written, each of which has to be a whole record.
func (w *worker) records(t *testing.T) []record {
	t.Helper()
	var all []record
	for _, line := range append(w.stdout.lines(), w.stderr.lines()...) {
		require.Less(t, len(line), 16<<10)
		var r record
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&r), "%.200s", line)
		all = append(all, r)
	}
	return all
}

// LG-01: whatever a handler prints or logs, behind either door, the platform's log has whole lines of bounded length.
func TestLG01LongLines(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, door, nil, "long_lines.py")
			w.Offer(`{"id":"j1","batchId":"b1","input":{}}`)
			require.Contains(t, w.result(t, "j1").errorText(t), "as told")
			w.signal(t, syscall.SIGTERM)
			require.Zero(t, w.wait(t), w.stderr)
			cut := 0
			for _, r := range w.records(t) {
				require.NotContains(t, r.Message, "\uFFFD", "cut within a character")
				if strings.Contains(r.Message, "TRUNCATED") {
					cut++
				}
			}
			require.GreaterOrEqual(t, cut, 8, "four were logged and four printed")
		})
	}
}

// LG-02: a worker without work says a handful of lines, however often it is told that there is none, and ends without alarm.
func TestLG02IdleWorkerIsQuiet(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	d.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 204} })
	w := runCommand(t, d, []string{"RUNPOD_PING_INTERVAL=200"}, "--handler", "echo")
	eventually(t, func() bool { return len(w.Calls(apidouble.Take)) >= 4 && len(w.Calls(apidouble.Ping)) >= 10 }, "no calls")
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
	require.LessOrEqual(t, len(w.records(t)), 5)
	require.Empty(t, w.warnings())
}

// LG-04: jobs side by side, and each line that has to do with one names it and its batch: the worker's own and the handler's.
func TestLG04LinesNameTheirJob(t *testing.T) {
	t.Parallel()
	const jobs, prints = 10, 50
	w := runThrough(t, []string{"--concurrency", fmt.Sprint(jobs)}, []string{"CONCURRENCY_MODIFIER=" + fmt.Sprint(jobs)}, "chatty_async.py")
	for i := range jobs {
		w.Offer(fmt.Sprintf(`{"id":"job-%d","batchId":"batch-%d","input":{"jobs":%d,"prints":%d}}`, i, i, jobs, prints))
	}
	for i := range jobs {
		text := w.result(t, fmt.Sprint("job-", i)).errorText(t)
		require.Contains(t, text, "as told")
	}
	time.Sleep(100 * time.Millisecond)
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
	said, own := 0, map[string]int{}
	for _, r := range w.records(t) {
		if r.RequestID == nil {
			require.NotContains(t, r.Message, "job-", "a line of a job that does not name it")
			continue
		}
		n, ok := strings.CutPrefix(*r.RequestID, "job-")
		require.True(t, ok, *r.RequestID)
		message, ok := strings.CutPrefix(r.Message, "[batchId=batch-"+n+"] ")
		require.True(t, ok, r.Message)
		if who, _, ok := strings.Cut(message, " says "); ok {
			require.Equal(t, *r.RequestID, who)
			said++
		}
		own[message[:min(len(message), len("Started."))]]++
	}
	require.Equal(t, jobs*prints*3, said)
	for _, word := range []string{"Started.", "The job "} {
		require.Equal(t, jobs, own[word], word)
	}
}
