package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/proc"
)

// crashCode is the exit code from which on an exit is a crash: Go ends with 2 when a signal hits the C code below it.
const crashCode = 2

// startError says that a helper is not there, or does not run here. What it would have told is not known.
type startError struct {
	helper  Helper
	missing error  // there is no such program
	failed  error  // the system could not start it
	words   string // it ended before its first step, with these words of its own or of the loader
}

func (e startError) Error() string {
	switch {
	case e.missing != nil:
		return "no GPU helper: " + e.missing.Error()
	case errors.Is(e.failed, fs.ErrNotExist):
		return fmt.Sprintf("the %s helper needs glibc, which is not here", e.helper)
	case e.failed != nil:
		return fmt.Sprintf("the %s helper does not start: %s", e.helper, e.failed)
	}
	return fmt.Sprintf("the %s helper does not start: %s", e.helper, e.words)
}

// unaskedError says that there was no time left to start a helper, which says nothing about what it would have found.
type unaskedError struct{ cause error }

func (e unaskedError) Error() string { return "not looked at: " + e.cause.Error() }

// hangError says that a helper did not get on and was killed.
type hangError struct {
	helper Helper
	line   wire.Line     // the step that hung; without a state: between two steps
	limit  time.Duration // its limit
	cause  error         // or why all had to end
	stuck  bool          // not even a kill ended it
}

func (e hangError) Error() string {
	while := ""
	if e.line.State != "" {
		while = " while " + doing(e.line.Step)
	}
	text := fmt.Sprintf("no answer within %s%s", e.limit, while)
	if e.cause != nil {
		text = e.cause.Error() + while
	}
	if e.stuck {
		text += "; the process is stuck in the kernel and cannot be killed"
	}
	return text
}

// deathError says that a helper died.
type deathError struct {
	helper Helper
	line   wire.Line // the step in which it died; without a state: between two steps
	how    string
}

func (e deathError) Error() string {
	if e.line.State == "" {
		return "the driver ended the test: " + e.how
	}
	return fmt.Sprintf("the driver crashed while %s: %s", doing(e.line.Step), e.how)
}

// rubbishError says that a helper's report makes no sense.
type rubbishError struct {
	helper Helper
	err    error
}

func (e rubbishError) Error() string {
	return fmt.Sprintf("the %s helper's report makes no sense: %s", e.helper, e.err)
}

// trouble is the finding for a helper that did not get to its end.
func trouble(unit string, err error) finding {
	f := finding{status: checks.Fail, unit: unit, text: err.Error()}
	switch e := err.(type) { //nolint:errorlint // ask returns these as they are
	case startError:
		f.status = checks.Error
		f.remedy = "Install the helper programs beside this one, or name their folder in RUNPODCTL_WORKER_PROBES; releases carry them inside. They need glibc."
	case unaskedError:
		f.status = checks.Error
		f.remedy = "See what took so long before this, or raise RUNPOD_GPU_TEST_TIMEOUT."
	case hangError:
		f.kind = "TimeoutError"
		f.remedy = "Look for Xid 119 and 79 in the kernel's log of the host (dmesg), and reset the GPU or reboot."
		if e.stuck {
			f.remedy = "Reboot the host: the driver hangs."
		}
	case deathError:
		f.remedy = "A fault of the driver, or of libraries that do not fit it. Look for Xid in dmesg; install the driver anew."
	default:
		f.status = checks.Error
		f.remedy = "This is a fault of the helper. Use the one of this release, or report it."
	}
	return f
}

// lastWords says how a helper ended: the line that names a signal or a missing symbol, else its state.
func lastWords(output string, state proc.State) string {
	for line := range strings.Lines(output) {
		for _, sign := range []string{"SIG", "symbol lookup error", "undefined symbol", "not found", "fatal error:", "panic:"} {
			if strings.Contains(line, sign) {
				return strings.TrimSpace(line)
			}
		}
	}
	if state.Code == 0 && state.Err == nil {
		return "it ended without an answer"
	}
	return state.String()
}
