package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/internal/proc"
)

// silenceRounding is how exactly a message says how long nobody answered.
const silenceRounding = 100 * time.Millisecond

// maxOutput is how much of a tool's output is kept.
const maxOutput = 1 << 20

// toolError says that a tool ended badly.
type toolError struct {
	name  string
	words string
}

func (e toolError) Error() string { return e.name + " failed: " + e.words }

// silenceError says that a tool did not answer in time and was killed.
type silenceError struct {
	name  string
	limit time.Duration
	stuck bool
}

func (e silenceError) Error() string {
	text := fmt.Sprintf("driver tool did not answer in %s: %s", e.limit.Round(silenceRounding), e.name)
	if e.stuck {
		text += "; it is stuck in the kernel and cannot be killed"
	}
	return text
}

// runTool runs a program and returns what it printed. It is killed with all its children once its time is over.
func runTool(ctx context.Context, limit time.Duration, environ []string, args ...string) (string, error) {
	name := args[0][strings.LastIndexByte(args[0], '/')+1:]
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(at))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out output
	process, err := proc.Start(proc.Options{Args: args, Env: environ, Stdout: &out, Stderr: &out})
	if err != nil {
		return "", toolError{name, err.Error()}
	}
	select {
	case <-process.Exited():
		_ = process.Kill() // whom it left behind
	case <-ctx.Done():
		stuck := process.Kill() != nil
		return out.String(), silenceError{name: name, limit: limit, stuck: stuck}
	}
	if state := process.State(); state.Code != 0 || state.Err != nil {
		words, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
		if words == "" {
			words = state.String()
		}
		return out.String(), toolError{name, words}
	}
	return out.String(), nil
}

// output keeps the beginning of what two streams carry.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(b[:min(len(b), maxOutput-o.buf.Len())])
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// silent tells whether an error means that somebody did not answer, or that there was no time left to ask.
func silent(err error) bool {
	if _, ok := errors.AsType[silenceError](err); ok {
		return true
	}
	_, hung := errors.AsType[hangError](err)
	_, unasked := errors.AsType[unaskedError](err)
	return hung || unasked
}
