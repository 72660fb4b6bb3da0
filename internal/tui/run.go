package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"runpodctl-worker/internal/checks"
)

// ErrInterrupted is the end of a screen that was left while checks ran, or by Ctrl-C or the context.
var ErrInterrupted = errors.New("interrupted")

// Options say what the screen shows and where.
type Options struct {
	Document Document // title and host of the screen and of its reports
	Steps    []checks.Step
	Runner   *checks.Runner
	Watch    time.Duration // not 0: everything runs again so long after the end of a run
	Color    bool
	In       *os.File  // the terminal
	Out      io.Writer // the terminal
}

// Run runs the steps, shows them and whatever is run again until the screen is left, and prints the last state beneath
// what stood in the terminal before. It returns that state, and ErrInterrupted where it is not a finished one.
func Run(ctx context.Context, o Options) (checks.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var program *tea.Program
	var runs sync.WaitGroup
	begin := func(steps []checks.Step) {
		runs.Go(func() {
			o.Runner.Run(ctx, steps, func(e checks.Event) { program.Send(eventMsg{e}) })
		})
	}
	var gone atomic.Bool
	lose := func() { gone.Store(true); cancel() }
	s := newScreen(o, begin, cancel)
	program = tea.NewProgram(s, tea.WithInput(keyboard{o.In, lose}), tea.WithOutput(o.Out), tea.WithAltScreen(),
		tea.WithoutSignalHandler()) // signals end the context
	stop := context.AfterFunc(ctx, func() { program.Send(stopMsg{}) })
	_, err := program.Run()
	stop()
	cancel()
	runs.Wait() // the runner leaves behind what does not come back

	d := s.document()
	if gone.Load() { // whatever else has failed, failed for that
		return d.Report, ErrInterrupted
	}
	if err != nil {
		return d.Report, fmt.Errorf("the screen failed: %w", err)
	}
	if _, err := io.WriteString(o.Out, d.text(s.width, o.Color)); err != nil {
		return d.Report, fmt.Errorf("print the report: %w", err)
	}
	if s.interrupted {
		return d.Report, ErrInterrupted
	}
	return d.Report, nil
}

// keyboard is the terminal's side that is read. A terminal that has gone is told by nothing else where SIGHUP is ignored, as
// nohup has it, and bubbletea takes the end of its input for silence.
type keyboard struct {
	*os.File
	gone func()
}

func (k keyboard) Read(b []byte) (int, error) {
	n, err := k.File.Read(b)
	if err != nil {
		k.gone()
	}
	return n, err
}
