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
	HandlerExited               // the handler's program ended by itself
)

func (r Reason) String() string {
	return [...]string{"not started", "drained", "refreshed", "handler exited"}[r]
}

// UnsettledError names the jobs whose results the platform has not accepted when the worker ended. They
// are released: nothing more is posted for them, and the platform gives them to another worker.
type UnsettledError struct{ Jobs []string }

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("%d job(s) left unsettled: %s", len(e.Jobs), strings.Join(e.Jobs, ", "))
}

// Causes of a cancelled context.
var (
	errStopped   = errors.New("the platform stopped the job")
	errReleased  = errors.New("the worker ended before the job did")
	errRefresh   = errors.New("a job asked for a fresh worker")
	errExited    = errors.New("the handler's program ended")
	errJobOver   = errors.New("the job is over")
	errNoWelcome = errors.New("the platform no longer knows the job")
)
