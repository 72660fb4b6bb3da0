package program

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"runpodctl-worker/internal/proc"
)

// ExitError is the end of a program.
type ExitError struct {
	State  proc.State
	Early  bool     // it ended before it called start()
	Hidden bool     // it was early because it found no runpod package
	Local  bool     // it ran one job by itself, for its own --test_input
	Fault  error    // what it did that made an end necessary
	Tail   []string // the last lines of its output

	shim, gateway bool // the doors that were open to it
}

func (e *ExitError) Error() string {
	text := "the program ended (" + e.State.String() + ")"
	switch {
	case e.Fault != nil:
		text += " because " + e.Fault.Error()
	case e.Local:
		text += " after the job of its own --test_input"
	case e.Hidden && !e.shim:
		text += " since it did not find runpod: without the worker's own package its Python needs one: pip install runpod"
	case e.Hidden && e.gateway:
		text += " since it did not find runpod: " + hides + ", and its Python has none of its own: pip install runpod"
	case e.Hidden:
		text += " since it did not find runpod: " + hides
	case e.Early && !e.shim:
		text += " before it asked for a job"
	case e.Early && e.State.Code == 0:
		text += ` before it called runpod.serverless.start(): end the file with ` +
			`runpod.serverless.start({"handler": handler}), or name the function as in --handler handler.py:handler`
	case e.Early:
		text += " before it was ready for jobs"
	}
	return text
}

// hides is why a program may not come to the shim.
const hides = "python -I and -E, or a script that overwrites PYTHONPATH, hide the worker's runpod package from it"

// Unwrap is the fault: a program that said that it is unhealthy ended for an *UnhealthyError.
func (e *ExitError) Unwrap() error { return e.Fault }

// Report is the message with the last lines of the program's output.
func (e *ExitError) Report() string {
	if len(e.Tail) == 0 {
		return e.Error()
	}
	return e.Error() + "; its last lines:\n" + strings.Join(e.Tail, "\n")
}

// lostError is the end of the program as it is told by a job that was lost with it: whoever reads the job's
// error has no other way to the program's last words.
type lostError struct{ *ExitError }

func (e lostError) Error() string { return e.Report() }
func (e lostError) Unwrap() error { return e.ExitError }

func withLastLines(err error) error {
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return lostError{exit}
	}
	return err
}

// reason is how the program ended. The caller holds p.mu.
func (p *Program) reason() error {
	select {
	case <-p.proc.Exited():
	default: // it survived even a KILL
		return p.fault
	}
	tail := p.proc.Tail()
	for i, line := range tail {
		tail[i] = p.opts.Secrets.CutString(message(line)) // it may have died within a line
	}
	missed := func(line string) bool { return strings.HasSuffix(line, "No module named 'runpod'") }
	return &ExitError{
		State: p.proc.State(), Early: !p.claimed, Local: p.local, Fault: p.opts.Secrets.Error(p.fault), Tail: tail,
		Hidden: !p.claimed && !p.doors.found() && slices.ContainsFunc(tail, missed),
		shim:   p.doors != nil, gateway: p.gateway != nil,
	}
}

// message is what a line of a JSON log says, for people; any other line says itself.
func message(line string) string {
	var record struct {
		Message string `json:"message"`
	}
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &record) == nil && record.Message != "" {
		return record.Message
	}
	return line
}
