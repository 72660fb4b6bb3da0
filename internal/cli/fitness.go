package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/worker"
)

// checkLimit is how long one registered check may take. A check that hangs must not keep a worker that takes no jobs.
const checkLimit = 30 * time.Second

var errCheckHangs = fmt.Errorf("TimeoutError: no answer within %s", checkLimit)

// checker is a handler whose program may have registered fitness checks.
type checker interface {
	Check(ctx context.Context, index int) error
}

// runChecks runs the fitness checks that the handler registered, in their order, and logs in the SDK's words. The first
// that fails makes the worker unhealthy.
func runChecks(ctx context.Context, handler worker.Handler, names []string, log *slog.Logger) error {
	able, ok := handler.(checker)
	if !ok || len(names) == 0 {
		return nil
	}
	begin := time.Now()
	log.Info(fmt.Sprintf("Running %d fitness check(s)...", len(names)))
	for i, name := range names {
		log.Debug("Executing fitness check: " + name)
		if err := runCheck(ctx, able, i); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			log.Error("Fitness check failed: " + name + " | " + checkFailure(err))
			log.Error("Worker is unhealthy, exiting.")
			return silent(exitFailed)
		}
		log.Debug("Fitness check passed: " + name)
	}
	log.Info(fmt.Sprintf("All fitness checks passed. (%.2fms)", float64(time.Since(begin).Microseconds())/1000))
	return nil
}

func runCheck(ctx context.Context, handler checker, index int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, errCheckHangs)
	defer cancel()
	return handler.Check(ctx, index)
}

// checkFailure is "TYPE: MESSAGE", as for an exception, also where the check could not be run.
func checkFailure(err error) string {
	if failed, ok := errors.AsType[*program.CheckError](err); ok {
		return failed.Error()
	}
	if errors.Is(err, errCheckHangs) {
		return err.Error()
	}
	return "RuntimeError: " + err.Error()
}

// skipsChecks tells whether the environment wants no fitness checks at all.
func skipsChecks(lookup config.Lookup) bool {
	value, _ := lookup(config.SkipChecks)
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(value))
}
