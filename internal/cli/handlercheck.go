package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/lazy"
)

// registeredLimit is how long one check that a handler registered may take.
const registeredLimit = 30 * time.Second

// unwindTime is what the runner grants beyond that, so that it is the handler's process that is found hanging.
const unwindTime = time.Second

// laneOwn is the lane of checks that share the handler's process with its model on the GPU.
const laneOwn = checks.LaneGPU

// checker is a handler whose program may have registered fitness checks.
type checker interface {
	Check(ctx context.Context, index int) error
}

// registeredPrefix begins the ids of the checks that a handler registered.
const registeredPrefix = "yours."

// splitRegistered parts the ids of registered checks from those that are known before the handler has started. To run
// one of them the handler has to start.
func splitRegistered(f checks.Filter) (known, registered checks.Filter) {
	part := func(ids []string) (known, registered []string) {
		for _, id := range ids {
			if strings.HasPrefix(id, registeredPrefix) {
				registered = append(registered, id)
			} else {
				known = append(known, id)
			}
		}
		return known, registered
	}
	known.Only, registered.Only = part(f.Only)
	known.Skip, registered.Skip = part(f.Skip)
	if len(registered.Only) > 0 {
		known.Only = append(known.Only, handlerID)
	}
	return known, registered
}

// pickRegistered filters the checks that a handler registered.
func pickRegistered(f checks.Filter, list []checks.Check) ([]checks.Check, error) {
	steps := make([]checks.Step, len(list))
	for i, c := range list {
		steps[i] = checks.Step{Check: c, In: c.Phase}
	}
	steps, err := f.Apply(steps)
	if err != nil {
		return nil, err
	}
	picked := make([]checks.Check, len(steps))
	for i, s := range steps {
		picked[i] = s.Check
		if s.Exclude != "" {
			picked[i].Run = func(context.Context) checks.Result { return checks.Skipped("%s", s.Exclude) }
		}
	}
	return picked, nil
}

// address is what an object without a name is told apart by; it is another one in each process, so no id can have it.
var address = lazy.Regexp(` at 0x[0-9a-fA-F]+`)

// registeredChecks makes checks of those that a handler registered, in their order. Names may be equal; ids may not.
func registeredChecks(names []string, limit time.Duration, ask func(ctx context.Context, index int) checks.Result) []checks.Check {
	taken := map[string]int{}
	list := make([]checks.Check, len(names))
	for i, name := range names {
		id := registeredPrefix + strings.Join(strings.FieldsFunc(address().ReplaceAllString(name, ""), func(r rune) bool { return r == ',' || r <= ' ' }), "_")
		if taken[id]++; taken[id] > 1 {
			id = fmt.Sprintf("%s#%d", id, taken[id])
		}
		list[i] = checks.Check{
			ID: id, Name: name, Title: name, Phase: checks.Start, Lane: laneOwn, Limit: limit,
			Run: func(ctx context.Context) checks.Result { return ask(ctx, i) },
		}
	}
	return list
}

// registered lists the checks that the program of a running handler registered.
func registered(handler any, names []string) []checks.Check {
	able, ok := handler.(checker)
	if !ok {
		return nil
	}
	return registeredChecks(names, registeredLimit+unwindTime, func(ctx context.Context, index int) checks.Result {
		return askChecker(ctx, able, index, registeredLimit)
	})
}

// errNoAnswer is the cause of a registered check's context once its time is over.
var errNoAnswer = errors.New("no answer in time")

// askChecker runs one registered check within its limit and puts what came of it into words.
func askChecker(ctx context.Context, handler checker, index int, limit time.Duration) checks.Result {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	err := handler.Check(ctx, index)
	switch {
	case err == nil:
		return checks.Result{Status: checks.Pass, Summary: "passed"}
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
		return checks.Skipped("interrupted")
	case ctx.Err() != nil:
		return checks.Result{
			Status: checks.Fail, Kind: "TimeoutError", Summary: fmt.Sprintf("no answer within %s", limit),
			Remedy: "The check hangs, and would keep a worker from ever starting. Give what it waits for a time limit of its own.",
		}
	}
	if failed, ok := errors.AsType[*program.CheckError](err); ok {
		first, _, more := strings.Cut(strings.TrimSpace(failed.Message), "\n")
		result := checks.Result{
			Status: checks.Fail, Kind: failed.Type, Summary: first,
			Remedy: "This check is the handler's own: it raised " + failed.Type + ".",
		}
		if more {
			result.Output = failed.Message
		}
		return result
	}
	if exit, ok := errors.AsType[*program.ExitError](err); ok {
		return checks.Result{
			Status: checks.Fail, Summary: "it ended the handler's process: " + exit.State.String(),
			Remedy: "A check says that it failed by raising an exception; it must not end the process.",
			Output: strings.Join(exit.Tail, "\n"),
		}
	}
	return checks.Result{Status: checks.Fail, Summary: err.Error(), Remedy: "The handler's process could not be asked."}
}
