package gpu

import (
	"context"
	"os"
	"time"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/proc"
)

// question is one run of a helper.
type question struct {
	helper  Helper
	args    []string
	environ []string
	stdin   *os.File        // nil: empty
	seen    func(wire.Line) // not nil: called for each line as it comes
}

// helpers runs helper programs. Every run ends within its limits, also one that ignores all signals.
type helpers struct {
	locate  Locator
	limit   func(wire.Step) time.Duration // of a step
	between time.Duration                 // of a start, an exit and what lies between two steps
	kill    func(*proc.Process) error     // Process.Kill, but in tests: nobody can make a process that no signal ends
}

// ask runs a helper to its end and returns the steps that it finished. The error says why it did not get to the end;
// what it finished before still counts.
func (h *helpers) ask(ctx context.Context, q question) ([]wire.Line, error) {
	if ctx.Err() != nil {
		return nil, unaskedError{context.Cause(ctx)}
	}
	program, err := h.locate(q.helper)
	if err != nil {
		return nil, startError{helper: q.helper, missing: err}
	}
	defer program.Close()
	report, write, err := os.Pipe()
	if err != nil {
		return nil, startError{helper: q.helper, failed: err}
	}
	r := &run{helpers: h, question: q, report: report}
	r.process, err = proc.Start(proc.Options{
		Args: append([]string{program.Path}, q.args...), Env: q.environ,
		Stdin: q.stdin, Files: program.files(write), Stdout: &r.output, Stderr: &r.output,
	})
	_ = write.Close() // ours: the helper has its own
	if err != nil {
		_ = report.Close()
		return nil, startError{helper: q.helper, failed: err}
	}
	lines, stop := make(chan reported), make(chan struct{})
	go read(report, lines, stop)
	err = r.follow(ctx, lines)
	close(stop)
	_ = report.Close()
	for range lines { // the reader's end is ours too
	}
	return r.finished, err
}

// run is a helper that runs.
type run struct {
	*helpers
	question

	process  *proc.Process
	report   *os.File
	output   output // what it and the driver print
	finished []wire.Line
	current  wire.Line // the step that has begun, if any
	last     wire.State
}

// follow keeps the time of each step until the helper has ended. Nothing of it is left running.
func (r *run) follow(ctx context.Context, lines <-chan reported) error {
	limit := r.between
	timer := time.NewTimer(limit)
	defer timer.Stop()
	exited := r.process.Exited()
	for lines != nil || exited != nil {
		select {
		case item, more := <-lines:
			switch {
			case !more:
				lines = nil
			case item.err != nil:
				_ = r.kill(r.process) // what it said is the finding
				return rubbishError{r.helper, item.err}
			default:
				limit = r.take(item.line)
				timer.Reset(limit)
			}
		case <-exited:
			exited = nil
			_ = r.kill(r.process)                                   // whom it left behind in its group
			_ = r.report.SetReadDeadline(time.Now().Add(drainTime)) // somebody who left the group may hold the pipe
		case <-timer.C:
			return hangError{helper: r.helper, line: r.current, limit: limit, stuck: r.kill(r.process) != nil}
		case <-ctx.Done():
			return hangError{helper: r.helper, line: r.current, cause: context.Cause(ctx), stuck: r.kill(r.process) != nil}
		}
	}
	return r.ending()
}

// forever is the limit of what ends when we say so.
const forever = 24 * time.Hour

// take notes a line, and says how long the next one may take.
func (r *run) take(line wire.Line) time.Duration {
	if r.seen != nil {
		r.seen(line)
	}
	r.last = line.State
	switch line.State {
	case wire.StateBegin:
		r.current = line
		return r.limit(line.Step)
	case wire.StateEnd:
		r.current = wire.Line{}
		return r.between
	default:
		r.current = wire.Line{}
		r.finished = append(r.finished, line)
		watching := line.Step == wire.NVMLWatch || line.Step == wire.NVMLEvent
		if watching && line.State == wire.StateOK {
			return forever // until its stdin ends
		}
		return r.between
	}
}

// ending judges a helper that ended by itself.
func (r *run) ending() error {
	state := r.process.State()
	switch {
	case r.last == wire.StateEnd && state.Signal == 0 && state.Err == nil && state.Code < crashCode:
		return nil
	case r.last == "":
		return startError{helper: r.helper, words: lastWords(r.output.String(), state)}
	}
	return deathError{helper: r.helper, line: r.current, how: lastWords(r.output.String(), state)}
}
