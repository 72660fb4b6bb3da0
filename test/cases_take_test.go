package test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/test/double"
)

// JP-05: a job that is handed out twice runs once.
func TestJP05SameJobTwice(t *testing.T) {
	t.Parallel()
	d, g := platform(t), newGates(t)
	d.Push(g.job("j1"), g.job("j1"))
	w := runWorker(t, d, "gate.py", nil, "--concurrency", "3")
	g.awaitStarted(1)
	w.Push(g.job("j1"), g.job("j2")) // once more while it runs, and another that shows that it was seen
	g.awaitStarted(2)
	g.open("j1")
	g.open("j2")
	w.result(t, "j1")
	w.result(t, "j2")
	require.Equal(t, 2, g.started())

	w.Push(g.job("j1"), g.job("j3")) // after its end it may run again or not
	g.open("j3")
	w.result(t, "j3")
	require.True(t, w.alive())
	require.NotEmpty(t, w.warnings(), "nothing was said about the double")
}

// warnings are the lines of the log at warn and above, in either format.
func (w *worker) warnings() []string {
	var found []string
	for _, line := range w.stderr.lines() {
		for _, level := range []string{`"level":"WARN"`, `"level":"ERROR"`, "WARN ", "ERROR "} {
			if strings.Contains(line, level) {
				found = append(found, line)
				break
			}
		}
	}
	return found
}

// oddAnswers are answers to a take that bring no job.
var oddAnswers = map[string]struct {
	answer double.Script
	quiet  bool // nothing is wrong, so nothing is logged
}{
	"204":            {answer: status(http.StatusNoContent), quiet: true},
	"400":            {answer: status(http.StatusBadRequest), quiet: true}, // usual while a worker thaws
	"429":            {answer: status(http.StatusTooManyRequests)},
	"500":            {answer: status(http.StatusInternalServerError)},
	"502 with HTML":  {answer: answer(http.StatusBadGateway, "text/html", "<html>bad gateway</html>")},
	"200 empty":      {answer: status(http.StatusOK)},
	"200 HTML":       {answer: answer(http.StatusOK, "text/html", "<html>welcome</html>")},
	"200 cut short":  {answer: answer(http.StatusOK, "application/json", `{"id":"j1","inp`)},
	"200 null":       {answer: answer(http.StatusOK, "application/json", `null`)},
	"200 without id": {answer: answer(http.StatusOK, "application/json", `{"input":{}}`)},
	"reset":          {answer: double.Reset},
}

func status(code int) double.Script { return answer(code, "", "") }

func answer(code int, contentType, body string) double.Script {
	return func(w http.ResponseWriter, _ double.Call) bool {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(code)
		// A failing write means that the worker is gone, which fails the test anyway.
		_, _ = w.Write([]byte(body))
		return true
	}
}

// JP-06: whatever a take is answered, the worker neither spins nor dies nor fills the log, and is there when
// a job comes.
func TestJP06OddAnswersToATake(t *testing.T) {
	t.Parallel()
	const watched = 2 * time.Second
	for name, row := range oddAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := platform(t)
			d.On(double.Take, row.answer)
			w := runWorker(t, d, "sync.py", nil)
			w.awaitTake(t)
			time.Sleep(watched)
			require.True(t, w.alive(), w.stderr)
			require.LessOrEqual(t, len(w.Calls(double.Take)), 10)
			if row.quiet {
				require.Empty(t, w.warnings())
			} else {
				require.Len(t, w.warnings(), 1)
			}

			d.On(double.Take, nil)
			w.Push(`{"id":"j2","input":{"items":[]}}`)
			w.result(t, "j2")
			if name == "429" {
				takes := w.Calls(double.Take)
				require.GreaterOrEqual(t, takes[1].At.Sub(takes[0].At), 5*time.Second)
			}
		})
	}
	t.Run("no such host", func(t *testing.T) {
		t.Parallel()
		env := []string{"RUNPOD_WEBHOOK_GET_JOB=http://no-such-host.invalid/v2/ep/job-take/$ID?"}
		w := runWorker(t, platform(t), "sync.py", env)
		eventually(t, func() bool { return len(w.warnings()) > 0 || !w.alive() }, "not a word")
		time.Sleep(watched)
		require.True(t, w.alive(), w.stderr)
		require.LessOrEqual(t, len(w.warnings()), 2) // one for each channel that cannot be reached
	})
}
