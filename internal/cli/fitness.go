package cli

import (
	"context"
	"fmt"
	"log/slog"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/protocol"
)

// setupCheck stands in the log and the unhealthy ping for what goes wrong before any check runs.
const setupCheck = "setup"

// fitness runs the checks of a production worker: the early ones before the handler exists, the others once it is
// loaded. The first that fails makes the worker unfit.
type fitness struct {
	lookup config.Lookup
	env    []string
	args   []string // of the command line, for the exemptions
	file   string   // with checks of the user's own
	log    *slog.Logger
	clean  func(string) string // takes secrets out of results; may be nil
	told   func(checks.Row)    // hears of each result; may be nil

	passed bool          // the early checks ran and passed
	first  checks.Config // what they were held against
}

// early runs the checks that are safe before the handler exists, where this is a worker that is to run them now.
func (f *fitness) early(ctx context.Context) error {
	f.first = checks.ConfigFrom(f.lookup)
	if due, why := f.first.EarlyPass(f.args); !due {
		f.log.Debug("No early fitness checks: " + why)
		f.passed = f.first.PassedBefore()
		return nil
	}
	if err := f.first.Err(); err != nil {
		return f.broken(err)
	}
	suite, driver, err := f.suite(ctx, f.first, false)
	if err != nil {
		return f.broken(err)
	}
	if err := f.run(ctx, f.steps(f.first, driver, suite.Plan(checks.Early))); err != nil {
		return err
	}
	f.passed = true
	return nil
}

// start runs what needs the loaded handler, disk again, and what the handler changed the thresholds of. With the early
// pass left out, everything runs here. For a program that was started anew only the GPUs and the user's own checks run.
func (f *fitness) start(ctx context.Context, ready protocol.Ready, handler any, first bool) error {
	cfg := checks.ConfigFrom(late(f.lookup, ready.Environ))
	if cfg.Switches.SkipAll {
		return nil
	}
	if err := cfg.Err(); err != nil {
		return f.broken(err)
	}
	suite, driver, err := f.suite(ctx, cfg, !f.passed)
	if err != nil {
		return f.broken(err)
	}
	if err := suite.Add(registered(handler, ready.Checks)...); err != nil {
		return f.broken(err)
	}
	var steps []checks.Step
	switch {
	case !first:
		for _, s := range suite.Plan(checks.Start) {
			if !s.Builtin || s.Lane == checks.LaneGPU {
				steps = append(steps, s)
			}
		}
	case !f.passed:
		for _, s := range suite.Plan() {
			if s.In == checks.Early || !s.Recheck {
				steps = append(steps, s)
			}
		}
	default:
		steps = append(f.changed(cfg, suite), suite.Plan(checks.Start)...)
	}
	return f.run(ctx, f.steps(cfg, driver, steps))
}

// changed lists the early checks whose threshold the handler's program has changed since. Disk runs again anyway.
func (f *fitness) changed(cfg checks.Config, suite *checks.Suite) []checks.Step {
	again := map[string]bool{
		"memory":       cfg.MinMemoryGB.Value != f.first.MinMemoryGB.Value,
		"cuda_version": cfg.MinCUDA.Value != f.first.MinCUDA.Value,
		"gpu_memory":   cfg.GPUTestPath.Value != f.first.GPUTestPath.Value,
		"gpu_health":   cfg.GPUCount.Value != f.first.GPUCount.Value,
	}
	var steps []checks.Step
	for _, s := range suite.Plan(checks.Early) {
		if again[s.ID] {
			steps = append(steps, s)
		}
	}
	return steps
}

func (f *fitness) suite(ctx context.Context, cfg checks.Config, deferred bool) (*checks.Suite, *gpu.Driver, error) {
	driver := gpu.New(gpu.Options{Config: cfg, Env: f.env, Deferred: deferred, EarlyPassed: func() bool { return f.passed }})
	suite, err := newSuite(ctx, cfg, driver, "", f.file)
	return suite, driver, err
}

// steps leaves out what the switches turn off, and GPU checks where no GPU is or is asked for: the log counts what runs.
func (f *fitness) steps(cfg checks.Config, driver *gpu.Driver, plan []checks.Step) []checks.Step {
	absent := driver.Absent() != ""
	var steps []checks.Step
	for _, s := range cfg.Switches.Apply(plan) {
		if s.Exclude == "" && (!absent || !s.Builtin || s.Lane != checks.LaneGPU) {
			steps = append(steps, s)
		}
	}
	return steps
}

// run runs the steps one after another up to the first that fails, and logs in the SDK's words.
func (f *fitness) run(ctx context.Context, steps []checks.Step) error {
	if len(steps) == 0 {
		return nil
	}
	f.log.Info(fmt.Sprintf("Running %d fitness check(s)...", len(steps)))
	runner := checks.NewRunner(checks.Options{StopAtFatal: true, Clean: f.clean})
	report := runner.Run(ctx, steps, f.tell)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed := report.Fatal(); len(failed) > 0 {
		return f.fail(failed[0])
	}
	f.log.Info(fmt.Sprintf("All fitness checks passed. (%.2fms)", float64(report.Took.Microseconds())/1000))
	return nil
}

// tell logs one event.
func (f *fitness) tell(event checks.Event) {
	switch e := event.(type) {
	case checks.Started:
		f.log.Debug("Executing fitness check: " + e.Step.Name)
	case checks.Finished:
		logRow(f.log, e.Row)
		if f.told != nil {
			f.told(e.Row)
		}
	}
}

func logRow(log *slog.Logger, row checks.Row) {
	said := row.Result.Said
	if said == "" {
		said = row.Step.Title + ": " + row.Result.Summary
	}
	switch {
	case row.Fatal(): // fail says it, as the last thing
	case row.Result.Status == checks.Pass:
		if row.Step.Builtin {
			log.Info(said)
		}
		log.Debug("Fitness check passed: " + row.Step.Name)
	case row.Result.Status == checks.Skip:
		log.Debug(said)
	default:
		log.Warn(said + ". " + row.Result.Remedy)
	}
}

// unfitError says which check found the worker unfit. All of it has been logged.
type unfitError struct{ check, reason string }

func (e *unfitError) Error() string { return "unfit: " + e.check + ": " + e.reason }

// fail turns a failed check into the worker's end.
func (f *fitness) fail(row checks.Row) error {
	kind, said := row.Result.Kind, row.Result.Said
	if kind == "" {
		kind = "RuntimeError"
	}
	if said == "" {
		said = row.Result.Summary
	}
	if row.Result.Remedy != "" {
		f.log.Error(row.Step.Title + ": " + row.Result.Remedy)
	}
	return f.unhealthy(row.Step.Name, kind, said)
}

// broken is the same end for what keeps the checks from running at all.
func (f *fitness) broken(err error) error { return f.unhealthy(setupCheck, "ValueError", err.Error()) }

func (f *fitness) unhealthy(check, kind, said string) error {
	f.log.Error("Fitness check failed: " + check + " | " + kind + ": " + said)
	f.log.Error("Worker is unhealthy, exiting.")
	return &unfitError{check, said}
}

// late is the lookup in which what the handler's program says of its own environment comes first.
func late(under config.Lookup, environ map[string]string) config.Lookup {
	return func(name string) (string, bool) {
		if v, ok := environ[name]; ok {
			return v, true
		}
		return under(name)
	}
}
