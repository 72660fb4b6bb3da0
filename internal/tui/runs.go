package tui

import (
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"runpodctl-worker/internal/checks"
)

// Never two runs at once: the lanes, which keep two checks off one GPU, hold within a run. A wish that comes meanwhile
// is kept, and its lines wait.

// startAll runs everything.
func (s *screen) startAll() {
	s.whole, s.board.began = true, s.clock()
	s.start(s.options.Steps)
}

// startWished runs what was asked for meanwhile. What a step brings to light comes with it and is not run twice.
func (s *screen) startWished() {
	var steps []checks.Step
	for _, l := range s.board.lines {
		if slices.Contains(s.wishes, l.key()) && !slices.Contains(s.wishes, l.by) {
			steps = append(steps, l.step)
		}
	}
	s.wishes, s.whole = nil, false
	s.start(steps)
}

func (s *screen) start(steps []checks.Step) {
	s.board.expect(steps)
	s.busy, s.next, s.hint = true, time.Time{}, ""
	s.begin(steps)
}

// wish asks for a new run of lines, now or after the present run.
func (s *screen) wish(lines []*line) {
	for _, l := range lines {
		s.board.wait(l)
		s.wishes = append(s.wishes, l.key())
	}
	if !s.busy {
		s.startWished()
	}
}

// event paints what happened in a run and decides what follows its end.
func (s *screen) event(e checks.Event) tea.Cmd {
	switch e := e.(type) {
	case checks.Started:
		s.board.started(e)
	case checks.Finished:
		s.board.finished(e.Row)
	case checks.Found:
		s.board.found(e)
	case checks.Ended:
		return s.ended(e.Report)
	}
	return nil
}

func (s *screen) ended(r checks.Report) tea.Cmd {
	s.busy = false
	if s.whole {
		s.board.began, s.board.took = r.Began, r.Took
	}
	switch {
	case s.leaving:
		return tea.Quit
	case len(s.wishes) > 0:
		s.startWished()
		return nil
	}
	if !s.moved {
		s.selectTrouble()
	}
	if s.options.Watch > 0 {
		s.next = s.clock().Add(s.options.Watch)
	}
	return nil
}

// leave ends the screen: at once, or as soon as the checks that run have been interrupted, which takes half a second.
func (s *screen) leave(interrupted bool) tea.Cmd {
	s.interrupted = s.interrupted || interrupted || s.busy
	if !s.busy {
		return tea.Quit
	}
	s.leaving = true
	s.cancel()
	return nil
}
