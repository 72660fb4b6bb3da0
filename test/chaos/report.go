package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"runpodctl-worker/internal/protocol"
)

// report is what became of the jobs.
type report struct {
	jobs, completed, failed, retried int
	lost, foreign                    int // no end; the result of another job
	accepted, doubled                int // ends that the platform took; jobs with more than one
	fired                            []int
	calls                            int
	took                             time.Duration
	exit                             int
}

// settleTime is how long the platform may take to tell of the last ends.
const settleTime = 30 * time.Second

func (p *platform) examine(ids []string, e *ends) (*report, error) {
	r := &report{jobs: len(ids)}
	states := make([]struct {
		Status  protocol.Status
		Retries int
		Output  struct{ N *int }
	}, len(ids))
	err := each(len(ids), func(i int) error { return p.call(http.MethodGet, "/v2/local/status/"+ids[i], "", &states[i]) })
	if err != nil {
		return nil, err
	}
	for i, job := range states {
		r.retried += job.Retries
		switch {
		case job.Status == protocol.Completed && (job.Output.N == nil || *job.Output.N != i):
			r.foreign++
		case job.Status == protocol.Completed:
			r.completed++
		case job.Status.Terminal():
			r.failed++
		default:
			r.lost++
		}
	}
	for end := time.Now().Add(settleTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, jobs, _ := e.total(); jobs == len(ids) {
			break
		}
	}
	r.accepted, _, r.doubled = e.total()
	var did struct {
		Rules []struct{ Fired, Matched int }
	}
	if err := p.call(http.MethodGet, "/_emulator/faults", "", &did); err != nil {
		return nil, err
	}
	for i, rule := range did.Rules {
		r.fired = append(r.fired, rule.Fired)
		if i == 0 { // each call is matched by the first rule
			r.calls = rule.Matched
		}
	}
	return r, nil
}

func (r *report) write(w io.Writer) {
	row := func(what string, value any) { fmt.Fprintf(w, "| %s | %v |\n", what, value) }
	fmt.Fprintf(w, "| what | number |\n| --- | --- |\n")
	row("jobs", r.jobs)
	row("calls of the worker", r.calls)
	for i, n := range r.fired {
		row("of them "+faults[i].name, n)
	}
	row("jobs handed out again", r.retried)
	row("COMPLETED with their own result", r.completed)
	row("FAILED", r.failed)
	row("with the result of another job", r.foreign)
	row("ends that the platform accepted", r.accepted)
	row("**lost**: without an end", r.lost)
	row("**doubled**: with two accepted ends", r.doubled)
	row("exit code of the worker", r.exit)
	row("time", r.took.Round(time.Second))
}

func (r *report) verdict() error {
	if r.lost+r.doubled+r.foreign+r.failed > 0 || r.completed != r.jobs || r.accepted != r.jobs || r.exit != 0 {
		return errors.New("that is not what was promised")
	}
	return nil
}
