// Package checks is the check core: what a fitness check is, what it may answer, in which order checks run, and the
// runner that keeps their time. Nothing here ends the process: who shows a report, or obeys it, decides.
package checks

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Phase is when a check runs.
type Phase int

// The phases, in their order.
const (
	Early Phase = iota + 1 // safe before the handler exists
	Start                  // needs the running worker, or may create a CUDA context
)

func (p Phase) String() string {
	switch p {
	case Early:
		return "early"
	case Start:
		return "start"
	}
	return fmt.Sprintf("phase %d", int(p))
}

// Status is what came of a check.
type Status int

// The outcomes of a check, from good to bad where they can be compared.
const (
	Pass  Status = iota
	Skip         // it does not concern this box, or was switched off; the summary says why
	Warn         // a worker may run, but somebody should look
	Error        // the check could not be run
	Fail         // the box is unfit
)

var statusNames = [...]string{Pass: "pass", Skip: "skip", Warn: "warn", Error: "error", Fail: "fail"}

func (s Status) String() string { return statusNames[s] }

// MarshalText makes the status a word in JSON.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The lanes.
const (
	LaneGPU   = "gpu"   // whatever uses a GPU: never two at once
	LaneYours = "yours" // what a user's own code or command does: one after another, in the user's order
)

// Check is one fitness check. Its metadata is fixed when it is made.
type Check struct {
	ID      string // stable: in --only, in reports
	Name    string // in log lines and the unhealthy ping: the SDK's name for it, or the user's function
	Title   string // for people: "Memory"
	Phase   Phase
	Recheck bool          // an early check that runs again at start
	Builtin bool          // comes with the program; RUNPOD_SKIP_AUTO_SYSTEM_CHECKS and its like concern only these
	Switch  string        // the variable that turns a builtin check off; empty: RUNPOD_SKIP_AUTO_SYSTEM_CHECKS
	Vital   bool          // it must be able to run: an Error of it makes a worker unfit as a Fail does
	Lane    string        // checks of one lane never run side by side; empty: beside any other
	Limit   time.Duration // how long it may take; 0: the runner's limit
	Run     func(ctx context.Context) Result
}

// Fatal says whether a result of this check makes a worker unfit.
func (c Check) Fatal(s Status) bool { return s == Fail || s == Error && c.Vital }

func (c Check) called() string { return cmp.Or(c.Title, c.ID) }

// Result is the answer of a check.
type Result struct {
	Status    Status
	Summary   string     // one line: what was found, or why it was not looked at
	Said      string     // the same in the SDK's words, for the log, where it has some
	Kind      string     // type of the failure in the log line; empty: RuntimeError
	Remedy    string     // what to do; never empty unless the check passed or was skipped
	Threshold *Threshold // what was asked for
	Facts     []Fact
	Output    string  // what a tool or a user's check printed
	Misread   bool    // a setting makes no sense: a worker must not start on a threshold that nobody meant
	Found     []Check // more checks, which this one brought to light; they run right after it
}

// Fact is one thing that a check saw.
type Fact struct {
	Name  string // snake_case, with the unit at the end: "available_gb"
	Value any    // for programs: a number, text, a bool or a list of these
	Text  string // for people; empty: the value as it prints
}

func (f Fact) String() string {
	if f.Text != "" {
		return f.Text
	}
	return fmt.Sprint(f.Value)
}

// Threshold is what a check was held against, and who says so.
type Threshold struct {
	Value  any    `json:"value"`
	Text   string `json:"text"`   // "at least 4 GB available"
	Origin string `json:"origin"` // "default", a variable's name, a flag, or a file
}

// Skipped is the result of a check that does not concern this box.
func Skipped(format string, args ...any) Result {
	return Result{Status: Skip, Summary: fmt.Sprintf(format, args...)}
}

// Misread is the result of a check that was told something which makes no sense.
func Misread(err error) Result {
	return Result{
		Status: Error, Kind: "ValueError", Misread: true,
		Summary: err.Error(), Remedy: "Correct the value, or leave it out for the default.",
	}
}
