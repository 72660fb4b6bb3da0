package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/tui"
)

// sideBySide is how many checks the doctor runs at once where they do not get into each other's way.
const sideBySide = 4

const commandDoctor = "doctor"

func doctorCommand(s *session) *cli.Command {
	return s.newCommand(commandDoctor, "Checks whether this machine is fit for a worker, and says what to do where it is not.", []string{
		"doctor",
		"doctor --handler handler.py",
		"doctor --json | jq '.checks[] | select(.status == \"fail\")'",
	}, doctorFlags, s.doctor)
}

// examination is one call of the doctor, its flags checked.
type examination struct {
	steps   []checks.Step
	runner  *checks.Runner
	handler *doctorHandler // nil: none was named
	watch   time.Duration
	strict  bool
	color   bool
}

func (s *session) doctor(c *cli.Context) error {
	for _, pair := range [][2]string{{flagJSON, flagPlain}, {flagJSON, flagList}} {
		if c.Bool(pair[0]) && c.Bool(pair[1]) {
			return usagef("give either --%s or --%s, not both", pair[0], pair[1])
		}
	}
	ctx, stop := s.untilSignal()
	defer stop()
	x, err := s.examination(ctx, c)
	switch {
	case ctx.Err() != nil:
		return silent(exitInterrupted)
	case err != nil:
		return err
	case c.Bool(flagList):
		return listChecks(s.Stdout, x.steps)
	}
	if x.handler != nil {
		defer x.handler.close() // before stop: a second signal may have to help
	}
	report, err := s.examine(ctx, c, x)
	switch {
	case errors.Is(err, tui.ErrInterrupted):
		return silent(exitInterrupted)
	case err != nil:
		return err
	case !report.OK(x.strict):
		return silent(exitFailed)
	}
	return nil
}

// examine runs the checks and shows them in the way that was asked for, or that the terminal can.
func (s *session) examine(ctx context.Context, c *cli.Context, x *examination) (checks.Report, error) {
	in, _ := s.Stdin.(*os.File)
	out, _ := s.Stdout.(*os.File)
	doc := tui.Document{Title: "runpodctl-worker", Version: fullVersion(), Host: hostFacts(), Strict: x.strict}
	switch {
	case c.Bool(flagJSON):
		return x.rounds(ctx, nil, func(report checks.Report) error {
			doc.Report = report
			return tui.JSON(s.Stdout, doc)
		})
	case c.Bool(flagPlain) || !tui.Interactive(in, out, s.Lookup):
		lines := &remembered{w: s.Stdout}
		return x.rounds(ctx, tui.Plain(lines, tui.PlainOptions{
			Title: doc.Title + " " + doc.Version, Host: doc.Host, Steps: x.steps, Width: width(out), Color: x.color, Strict: x.strict,
		}), func(checks.Report) error { return lines.err })
	}
	return tui.Run(ctx, tui.Options{
		Document: doc, Steps: x.steps, Runner: x.runner, Watch: x.watch, In: in, Out: out, Color: x.color,
	})
}

// remembered keeps the first error of its writer, for who writes without looking.
type remembered struct {
	w   io.Writer
	err error
}

func (r *remembered) Write(b []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.w.Write(b)
	if err != nil {
		r.err = fmt.Errorf("write the report: %w", err)
	}
	return n, r.err
}

// rounds runs all checks once, or with --watch until it is interrupted; each report goes to show.
func (x *examination) rounds(ctx context.Context, emit func(checks.Event), show func(checks.Report) error) (checks.Report, error) {
	for {
		report := x.runner.Run(ctx, x.steps, emit)
		if show != nil {
			if err := show(report); err != nil {
				return report, err
			}
		}
		if ctx.Err() != nil {
			return report, tui.ErrInterrupted
		}
		if x.watch == 0 {
			return report, nil
		}
		select {
		case <-time.After(x.watch):
		case <-ctx.Done():
			return report, tui.ErrInterrupted // as on the screen
		}
	}
}

// listChecks prints the plan. A check that runs in both phases is named once for each.
func listChecks(w io.Writer, steps []checks.Step) error {
	width := 0
	for _, s := range steps {
		width = max(width, len(s.ID))
	}
	for _, s := range steps {
		if _, err := fmt.Fprintf(w, "%-*s  %s  %s\n", width, s.ID, s.In, s.Title); err != nil {
			return err
		}
	}
	return nil
}
