// Package mistake turns panics into errors. What the runtime makes of one goes past the log, which keeps secrets, and
// leaves other programs behind.
package mistake

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// Error is a panic, and where it came from.
type Error struct {
	value any
	at    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("a mistake in this program: %v, at %s", e.value, e.at)
}

// Unwrap is what the panic was made with, if that is an error.
func (e *Error) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// Catch runs f. The error is its panic.
func Catch(f func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, place()}
		}
	}()
	f()
	return nil
}

// maxFrames is how many calls are named: more make no line for people.
const maxFrames = 16

// place names the calls that led to a panic, the last one first. It is called while that is recovered.
func place() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	var names []string
	for panicked, more := false, true; more && len(names) < maxFrames; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			names = append(names, fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), filepath.Base(f.File), f.Line))
		}
	}
	return strings.Join(names, " < ")
}
