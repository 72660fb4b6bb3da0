package worker

import (
	"errors"
	"fmt"
	"strings"
)

// Reason says why a worker ended.
type Reason int

// The ways in which a worker ends.
const (
	NotStarted    Reason = iota // the handler did not get ready
	Drained                     // it was told to stop
	Refreshed                   // a job asked for a fresh worker
	HandlerExited               // the handler's program does not stay up
)

func (r Reason) String() string {
	return [...]string{"not started", "drained", "refreshed", "handler exited"}[r]
}

// UnsettledError names the jobs that the end of the worker cut short.
type UnsettledError struct {
	Jobs   []string // released: nothing more is posted for them, and the platform gives them to another worker
	Failed []string // reported FAILED, as Config.FailOnKill wants
}

func (e *UnsettledError) Error() string {
	var parts []string
	if len(e.Jobs) > 0 {
		parts = append(parts, fmt.Sprintf("%d job(s) left unsettled: %s", len(e.Jobs), strings.Join(e.Jobs, ", ")))
	}
	if len(e.Failed) > 0 {
		parts = append(parts, fmt.Sprintf("%d job(s) failed because the worker was stopped: %s", len(e.Failed), strings.Join(e.Failed, ", ")))
	}
	return strings.Join(parts, "; ")
}

// Causes of a cancelled context.
var (
	errStopped   = errors.New("the platform stopped the job")
	errReleased  = errors.New("the worker was stopped before the job had ended")
	errRefresh   = errors.New("a job asked for a fresh worker")
	errExited    = errors.New("the handler's program ended")
	errNoProgram = errors.New("there is no program to run the job")
	errJobOver   = errors.New("the job is over")
	errNoWelcome = errors.New("the platform no longer knows the job")
)
