package test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// JP-05: a job that is handed out twice runs once.
func TestJP05SameJobTwice(t *testing.T) {
	t.Parallel()
	d, g := apidouble.New(t), newGates(t)
	d.Offer(g.job("j1"), g.job("j1"))
	w := runWorker(t, d, "gate.py", nil, "--concurrency", "3")
	g.awaitStarted(1)
	w.Offer(g.job("j1"), g.job("j2")) // once more while it runs, and another that shows that it was seen
	g.awaitStarted(2)
	g.open("j1")
	g.open("j2")
	w.result(t, "j1")
	w.result(t, "j2")
	require.Equal(t, 2, g.started())

	w.Offer(g.job("j1"), g.job("j3")) // after its end it may run again or not
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
	reply apidouble.Reply
	quiet bool // it is one of the ways to say that there is no job, so nothing is logged
}{
	"204":            {reply: apidouble.Reply{Status: http.StatusNoContent}, quiet: true},
	"400":            {reply: apidouble.Reply{Status: http.StatusBadRequest}, quiet: true}, // usual while a worker thaws
	"429":            {reply: apidouble.Reply{Status: http.StatusTooManyRequests}},
	"500":            {reply: apidouble.Reply{Status: http.StatusInternalServerError}},
	"502 with HTML":  {reply: apidouble.Reply{Status: http.StatusBadGateway, Body: "<html>bad gateway</html>", Header: html}},
	"200 empty":      {reply: apidouble.Reply{}, quiet: true},
	"200 HTML":       {reply: apidouble.Reply{Body: "<html>welcome</html>", Header: html}},
	"200 cut short":  {reply: apidouble.Reply{Body: `{"id":"j1","inp`}},
	"200 null":       {reply: apidouble.Reply{Body: `null`}, quiet: true},
	"200 without id": {reply: apidouble.Reply{Body: `{"input":{}}`}},
	"reset":          {reply: apidouble.Reply{Drop: true}},
}

var html = map[string]string{"Content-Type": "text/html"}

// JP-06: whatever a take is answered, the worker neither spins nor dies nor fills the log, and is there when
// a job comes.
func TestJP06OddAnswersToATake(t *testing.T) {
	t.Parallel()
	const watched = 2 * time.Second
	for name, row := range oddAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := apidouble.New(t)
			d.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply { return &row.reply })
			w := runWorker(t, d, "sync.py", nil)
			w.awaitTake(t)
			time.Sleep(watched)
			require.True(t, w.alive(), w.stderr)
			require.LessOrEqual(t, len(w.Calls(apidouble.Take)), 10)
			if row.quiet {
				require.Empty(t, w.warnings())
			} else {
				require.Len(t, w.warnings(), 1)
			}

			d.On(apidouble.Take, nil)
			w.Offer(`{"id":"j2","input":{"items":[]}}`)
			w.result(t, "j2")
			if name == "429" {
				takes := w.Calls(apidouble.Take)
				require.GreaterOrEqual(t, takes[1].At.Sub(takes[0].At), 5*time.Second)
			}
		})
	}
	t.Run("no such host", func(t *testing.T) {
		t.Parallel()
		env := []string{"RUNPOD_WEBHOOK_GET_JOB=http://no-such-host.invalid/v2/ep/job-take/$ID?"}
		w := runWorker(t, apidouble.New(t), "sync.py", env)
		eventually(t, func() bool { return len(w.warnings()) > 0 || !w.alive() }, "not a word")
		time.Sleep(watched)
		require.True(t, w.alive(), w.stderr)
		require.LessOrEqual(t, len(w.warnings()), 2) // one for each channel that cannot be reached
	})
}
