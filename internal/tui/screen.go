package tui

import (
	"time"

	"github.com/charmbracelet/bubbles/spinner"
	tea "github.com/charmbracelet/bubbletea"

	"runpodctl-worker/internal/checks"
)

const hintTime = 4 * time.Second

// The messages that are not bubbletea's own.
type (
	eventMsg struct{ checks.Event } // of the runner
	tickMsg  struct{}
	hintMsg  string   // something to tell for a moment
	stopMsg  struct{} // the context has ended
)

// screen is the model. Only bubbletea's event loop touches it.
type screen struct {
	options Options
	look    look
	clock   func() time.Time
	begin   func([]checks.Step) // starts a run that reports by eventMsg
	cancel  func()              // interrupts it

	board  *board
	busy   bool      // a run is under way
	whole  bool      // it is one of everything
	wishes []string  // keys of the lines to run after it
	next   time.Time // when everything runs again

	width, height int
	selected      string // key of the line
	moved         bool   // by the user
	top           int    // first line of the list that is shown
	detail        bool   // the detail stands in place of the list
	offset        int    // first line of the detail that is shown
	help          bool
	typing        bool // the filter
	filter        string
	trouble       bool // only what needs a look
	hint          string
	hintEnds      time.Time

	ticking     bool
	frame       int
	leaving     bool
	interrupted bool
}

func newScreen(o Options, begin func([]checks.Step), cancel func()) *screen {
	s := &screen{
		options: o, look: newLook(o.Color), clock: time.Now, begin: begin, cancel: cancel,
		board: newBoard(o.Steps),
	}
	s.clamp()
	return s
}

func (s *screen) Init() tea.Cmd {
	s.startAll()
	return s.tick()
}

func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyMsg:
		cmd = s.typed(msg)
	case eventMsg:
		cmd = s.event(msg.Event)
	case hintMsg:
		s.tell(string(msg))
	case stopMsg:
		cmd = s.leave(true)
	case tickMsg:
		s.ticking = false
		s.frame++
		s.passTime()
	}
	s.clamp()
	return s, tea.Batch(cmd, s.tick())
}

// tick asks for the next beat while something on the screen moves by itself.
func (s *screen) tick() tea.Cmd {
	if s.ticking || !s.busy && s.next.IsZero() && s.hint == "" {
		return nil
	}
	s.ticking = true
	return tea.Tick(spinner.MiniDot.FPS, func(time.Time) tea.Msg { return tickMsg{} })
}

func (s *screen) passTime() {
	now := s.clock()
	if s.hint != "" && !now.Before(s.hintEnds) {
		s.hint = ""
	}
	if !s.busy && !s.next.IsZero() && !now.Before(s.next) {
		s.startAll()
	}
}

func (s *screen) tell(hint string) {
	s.hint, s.hintEnds = hint, s.clock().Add(hintTime)
}

// document is the state of things for a file, for the clipboard and for the shell after the screen has gone.
func (s *screen) document() Document {
	d := s.options.Document
	d.Report = s.board.report()
	d.Report.Interrupted = s.busy || s.interrupted
	if s.busy && s.whole {
		d.Report.Took = s.clock().Sub(d.Report.Began)
	}
	return d
}
