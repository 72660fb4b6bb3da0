package checks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// limitError is the cause of a check's context once its time is over.
type limitError struct{ limit time.Duration }

func (e limitError) Error() string { return fmt.Sprintf("no answer within %s", e.limit) }

// one runs the check of one step within its limit, whatever the check does.
func (r *Runner) one(ctx context.Context, s Step) Result {
	if r.hangs(s.Key()) {
		return Result{
			Status: Fail, Kind: "TimeoutError", Summary: "the run before this one still hangs",
			Remedy: hangRemedy,
		}
	}
	limit := s.Limit
	if limit <= 0 {
		limit = r.options.Limit
	}
	if r.options.Cap > 0 && r.options.Cap < limit {
		limit = r.options.Cap
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, limitError{limit})
	defer cancel()

	answer := make(chan Result, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		defer func() {
			if p := recover(); p != nil {
				answer <- panicked(p)
			}
		}()
		answer <- s.Run(ctx)
	}()
	select {
	case res := <-answer:
		return res
	case <-ctx.Done():
	}
	select {
	case res := <-answer: // it noticed, and has more to say than we do
		return res
	case <-time.After(unwindTime):
	}
	r.leave(s.Key(), returned)
	if over, ok := errors.AsType[limitError](context.Cause(ctx)); ok {
		return Result{Status: Fail, Kind: "TimeoutError", Summary: over.Error(), Remedy: hangRemedy}
	}
	return Skipped("not finished: %s", reasonOf(ctx))
}

const hangRemedy = "Find out what it waits for: a dead network mount, a driver that does not answer (see the kernel's log), a service that is down."

func panicked(p any) Result {
	return Result{
		Status: Error, Kind: "RuntimeError", Summary: fmt.Sprintf("the check itself broke: %v", p),
		Remedy: "This is a fault of the check, not of the box. Please report it with the output below.",
		Output: strings.TrimSpace(string(debug.Stack())),
	}
}

// hangs tells whether an earlier run of the step was left behind and has not come back.
func (r *Runner) hangs(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	returned, ok := r.hanging[key]
	if !ok {
		return false
	}
	select {
	case <-returned:
		delete(r.hanging, key)
		return false
	default:
		return true
	}
}

func (r *Runner) leave(key string, returned chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hanging[key] = returned
}

// reasonOf says why a run ended early.
func reasonOf(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return "interrupted"
}
