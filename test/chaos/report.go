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
	wrong                            []error // ends that no job should have, or none
	accepted, doubled                int     // ends that the platform took; jobs with more than one
	fired                            []int
	calls                            int
	took                             time.Duration
	exit                             int
}

// settleTime is how long the platform may take to tell of the last ends.
const settleTime = 30 * time.Second

func (p *platform) examine(jobs []job, n *news) (*report, error) {
	r := &report{jobs: len(jobs)}
	states := make([]state, len(jobs))
	err := each(len(jobs), func(i int) error { return p.call(http.MethodGet, "/v2/local/status/"+jobs[i].id, "", &states[i]) })
	if err != nil {
		return nil, err
	}
	for i, s := range states {
		r.retried += s.Retries
		if err := jobs[i].judge(s); err != nil {
			r.wrong = append(r.wrong, err)
		}
		switch s.Status { //nolint:exhaustive // any other has no end, which is among what is wrong
		case protocol.Completed:
			r.completed++
		case protocol.Failed:
			r.failed++
		}
	}
	for end := time.Now().Add(settleTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if told, _ := n.total(); told == len(jobs) {
			break
		}
	}
	_, r.doubled = n.total()
	h, err := p.health()
	r.accepted = h.Jobs.Completed + h.Jobs.Failed
	if err != nil {
		return nil, err
	}
	return r, p.examineFaults(r)
}

func (p *platform) examineFaults(r *report) error {
	var did struct {
		Rules []struct{ Fired, Matched int }
	}
	if err := p.call(http.MethodGet, "/_emulator/faults", "", &did); err != nil {
		return err
	}
	for i, rule := range did.Rules {
		r.fired = append(r.fired, rule.Fired)
		if i == 0 { // each call is matched by the first rule
			r.calls = rule.Matched
		}
	}
	return nil
}

func row(w io.Writer, what string, value any) { fmt.Fprintf(w, "| %s | %v |\n", what, value) }

func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "\n| what | number |\n| --- | --- |\n")
	row(w, "jobs", r.jobs)
	row(w, "calls of the worker", r.calls)
	for i, n := range r.fired {
		row(w, "of them "+faults[i].name, n)
	}
	row(w, "jobs handed out again", r.retried)
	row(w, "COMPLETED", r.completed)
	row(w, "FAILED", r.failed)
	row(w, "**lost**: without an end", r.jobs-r.completed-r.failed)
	row(w, "with an end that is not theirs, or without", len(r.wrong))
	row(w, "ends that the platform accepted", r.accepted)
	row(w, "**doubled**: jobs with two accepted ends", r.doubled)
	row(w, "exit code of the worker", r.exit)
	row(w, "time", r.took.Round(time.Second))
}

// verdict names everything that was not promised.
func (r *report) verdict() error {
	errs := r.wrong[:min(len(r.wrong), 10)]
	if r.accepted != r.jobs {
		errs = append(errs, fmt.Errorf("%d jobs have %d accepted ends", r.jobs, r.accepted))
	}
	if r.doubled > 0 {
		errs = append(errs, fmt.Errorf("%d jobs were reported with two different ends", r.doubled))
	}
	if r.exit != 0 {
		errs = append(errs, fmt.Errorf("the worker ended with code %d", r.exit))
	}
	return errors.Join(errs...)
}
