package checks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// defaultLimit is how long a check may take that says nothing itself.
	defaultLimit = 30 * time.Second
	// unwindTime is how long a check that was told to end may take to return before it is left behind.
	unwindTime = 500 * time.Millisecond
)

// Options say how a Runner runs.
type Options struct {
	Cap         time.Duration // not 0: no check may take longer, whatever it says itself
	Total       time.Duration // not 0: of a whole run
	SideBySide  int           // how many checks may run at once; below 2: one after another
	StopAtFatal bool          // what follows a fatal result is not run

	Clean func(text string) string // not nil: takes out of the texts of a result what nobody may see
}

// Runner runs steps and tells what happens. A check that does not come back is left behind and reported; while it still
// hangs, neither it nor another one of its lane is started.
type Runner struct {
	options Options

	mu      sync.Mutex
	hanging []left
}

// NewRunner makes a runner.
func NewRunner(o Options) *Runner {
	if o.SideBySide < 1 {
		o.SideBySide = 1
	}
	return &Runner{options: o}
}

// Run runs the steps, phase by phase, and calls emit, which may be nil, for each event, one at a time. When ctx ends,
// what still runs is interrupted and the rest is not begun.
func (r *Runner) Run(ctx context.Context, steps []Step, emit func(Event)) Report {
	if emit == nil {
		emit = func(Event) {}
	}
	caller := ctx
	if r.options.Total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.options.Total,
			overdueError{fmt.Sprintf("all checks together may take %s", r.options.Total)})
		defer cancel()
	}
	began := time.Now()
	run := &run{runner: r, emit: emit, rows: map[string]Row{}}
	for len(steps) > 0 {
		phase := steps[0].In
		n := slices.IndexFunc(steps, func(s Step) bool { return s.In != phase })
		if n < 0 {
			n = len(steps)
		}
		run.phase(ctx, steps[:n])
		steps = steps[n:]
	}
	report := Report{Began: began, Took: time.Since(began), Interrupted: caller.Err() != nil}
	for _, key := range run.order {
		report.Rows = append(report.Rows, run.rows[key])
	}
	emit(Ended{report})
	return report
}

// run is the state of one Run. Its phase loop is the only one to touch it; checks report to it by channel.
type run struct {
	runner  *Runner
	emit    func(Event)
	order   []string
	rows    map[string]Row
	stopped string // what the step is called whose fatal result ended the run
}

// phase runs steps of one phase: as many side by side as the options say, never two of one lane, begun in order.
func (r *run) phase(ctx context.Context, steps []Step) {
	for _, s := range steps {
		r.order = append(r.order, s.Key())
	}
	waiting := slices.Clone(steps)
	busy := map[string]bool{}
	done := make(chan Row)
	running := 0
	for len(waiting) > 0 || running > 0 {
		waiting = r.begin(ctx, waiting, busy, &running, done)
		if running == 0 {
			continue
		}
		row := <-done
		running--
		delete(busy, row.Step.Lane)
		waiting = slices.Insert(waiting, 0, r.finish(row)...)
	}
}

// begin starts what may start now and settles what will not run; it returns what still has to wait.
func (r *run) begin(ctx context.Context, waiting []Step, busy map[string]bool, running *int, done chan<- Row) []Step {
	var later []Step
	first := maps.Clone(busy) // lanes in which somebody runs, or waits and goes first
	for _, s := range waiting {
		switch {
		case s.Exclude != "":
			r.finish(Row{Step: s, Result: Skipped("%s", s.Exclude)})
		case ctx.Err() != nil:
			r.finish(Row{Step: s, Result: Skipped("not run: %s", reasonOf(ctx))})
		case r.stopped != "" && *running == 0:
			r.finish(Row{Step: s, Result: Skipped("not run, because %s failed", r.stopped)})
		case r.stopped != "", *running >= r.runner.options.SideBySide, s.Lane != "" && first[s.Lane]:
			later = append(later, s)
			first[s.Lane] = true
		default:
			*running++
			busy[s.Lane], first[s.Lane] = true, true
			began := time.Now()
			r.emit(Started{s, began})
			go func() { done <- Row{Step: s, Result: r.runner.one(ctx, s), Took: time.Since(began)} }()
		}
	}
	return later
}

// finish records a result and returns the steps that it brought to light.
func (r *run) finish(row Row) []Step {
	if clean := r.runner.options.Clean; clean != nil {
		row.Result = row.Result.clean(clean)
	}
	found := r.found(row)
	r.rows[row.Step.Key()] = row
	if r.runner.options.StopAtFatal && row.Fatal() && r.stopped == "" {
		r.stopped = row.Step.called()
	}
	r.emit(Finished{row})
	if len(found) > 0 {
		keys := make([]string, len(found))
		for i, s := range found {
			keys[i] = s.Key()
		}
		r.order = slices.Insert(r.order, slices.Index(r.order, row.Step.Key())+1, keys...)
		r.emit(Found{row.Step.Key(), found})
	}
	return found
}

// found makes steps of the checks that a result brought to light. Two of a user's functions may share a name; an id
// that is taken gets a number.
func (r *run) found(row Row) []Step {
	taken := map[string]bool{}
	for _, key := range r.order {
		taken[key] = true
	}
	steps := make([]Step, 0, len(row.Result.Found))
	for _, c := range row.Result.Found {
		s := Step{Check: c, In: row.Step.In}
		for n := 2; taken[s.Key()]; n++ {
			s.ID = fmt.Sprintf("%s-%d", c.ID, n)
		}
		taken[s.Key()] = true
		steps = append(steps, s)
	}
	return steps
}
