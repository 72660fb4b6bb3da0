package checks

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// overdueError is the cause of a check's context once its time is over: its own, or that of all checks together.
type overdueError struct{ text string }

func (e overdueError) Error() string { return e.text }

// one runs the check of one step within its limit, whatever the check does.
func (r *Runner) one(ctx context.Context, s Step) Result {
	if other, ok := r.hangs(s); ok {
		return stillHangs(s, other)
	}
	limit := r.limit(s)
	limited, cancel := context.WithTimeoutCause(ctx, limit, overdueError{fmt.Sprintf("no answer within %s", limit)})
	defer cancel()

	answer := make(chan Result, 1)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		res := brokenOff()
		defer func() {
			if p := recover(); p != nil {
				res = panicked(p)
			}
			answer <- res
		}()
		res = s.Run(limited)
	}()
	select {
	case res := <-answer:
		return settled(ctx, res)
	case <-limited.Done():
	}
	select {
	case res := <-answer: // it noticed, and has more to say than we do
		return settled(ctx, res)
	case <-time.After(unwindTime):
	}
	r.leave(s, returned)
	if isInterrupted(ctx) {
		return interrupted(ctx)
	}
	return Result{Status: Fail, Kind: "TimeoutError", Summary: context.Cause(limited).Error(), Remedy: hangRemedy}
}

func (r *Runner) limit(s Step) time.Duration {
	limit := s.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	if r.options.Cap > 0 {
		limit = min(limit, r.options.Cap)
	}
	return limit
}

// settled is the verdict on an answer: what a check complains about after it was interrupted is the interruption.
func settled(ctx context.Context, res Result) Result {
	if isInterrupted(ctx) && res.Status != Pass && res.Status != Skip {
		return interrupted(ctx)
	}
	return res
}

// isInterrupted tells whether somebody ended the run, as opposed to its time being over.
func isInterrupted(ctx context.Context) bool {
	_, overdue := errors.AsType[overdueError](context.Cause(ctx))
	return ctx.Err() != nil && !overdue
}

func interrupted(ctx context.Context) Result { return Skipped("%s", reasonOf(ctx)) }

// reasonOf says why a run ended early.
func reasonOf(ctx context.Context) string {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return "interrupted"
}

const hangRemedy = "Find out what it waits for: a dead network mount, a driver that does not answer (see the kernel's log), a service that is down."

func stillHangs(s Step, other left) Result {
	if other.check.ID == s.ID {
		return Result{
			Status: Fail, Kind: "TimeoutError", Summary: "the run before this one still hangs", Remedy: hangRemedy,
		}
	}
	return Skipped("not run: %s still hangs, and the two must not run side by side", other.check.called())
}

func panicked(p any) Result {
	return Result{
		Status: Error, Summary: fmt.Sprintf("the check itself broke: %v", p), Remedy: brokenRemedy,
		Output: strings.TrimSpace(string(debug.Stack())),
	}
}

// brokenOff is what is left of a check that ended its goroutine in place of returning.
func brokenOff() Result {
	return Result{Status: Error, Summary: "the check itself broke: it ended without a result", Remedy: brokenRemedy}
}

const brokenRemedy = "This is a fault of the check, not of the box. Please report it, with the output if there is some."
