package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// State is how a program ended.
type State struct {
	Code   int            // the exit code; -1 when a signal ended it
	Signal syscall.Signal // 0 when it exited by itself
	Ours   bool           // the signal was the KILL of our own Stop
	Err    error          // waiting for it failed: nothing else is known
}

func newState(ps *os.ProcessState, waitErr error, killed bool) State {
	var exit *exec.ExitError
	if ps == nil || waitErr != nil && !errors.As(waitErr, &exit) {
		return State{Code: -1, Err: waitErr}
	}
	ws, ok := ps.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return State{Code: -1, Signal: ws.Signal(), Ours: killed && ws.Signal() == syscall.SIGKILL}
	}
	return State{Code: ps.ExitCode()}
}

// String is for people: "exit code 3", "killed by SIGKILL, likely out of memory".
func (s State) String() string {
	switch {
	case s.Err != nil:
		return "ended for an unknown reason: " + s.Err.Error()
	case s.Signal != 0:
		return describe(s.Signal, s.Ours)
	case s.Code > 128 && unix.SignalName(syscall.Signal(s.Code-128)) != "":
		// A shell reports the signal that ended its command in this way.
		return fmt.Sprintf("exit code %d (%s)", s.Code, describe(syscall.Signal(s.Code-128), false))
	default:
		return fmt.Sprintf("exit code %d", s.Code)
	}
}

func describe(sig syscall.Signal, ours bool) string {
	text := "killed by " + unix.SignalName(sig)
	if sig == syscall.SIGKILL {
		if ours {
			return text + " since it did not stop in time"
		}
		return text + ", likely out of memory"
	}
	return text
}
