package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

const (
	markWidth    = 2  // before each line of the list
	signWidth    = 9  // symbol, word and the space behind
	maxTitle     = 24 // cells of a title
	summaryWidth = 64 // from here on the list shows summaries,
	timesWidth   = 34 // and from here on times
)

// entry is a row of the list: a line, a heading, or nothing.
type entry struct {
	line    *line
	heading string
}

// shown are the lines that pass the filters.
func (s *screen) shown() []*line {
	var lines []*line
	for _, l := range s.board.lines {
		if s.matches(l) {
			lines = append(lines, l)
		}
	}
	return lines
}

func (s *screen) entries() []entry {
	var entries []entry
	var phase checks.Phase
	for _, l := range s.shown() {
		if l.step.In != phase {
			if phase != 0 {
				entries = append(entries, entry{})
			}
			phase = l.step.In
			entries = append(entries, entry{heading: phaseTitles[phase]})
		}
		entries = append(entries, entry{line: l})
	}
	return entries
}

// selectBy moves the selection by so many lines, to the ends at most.
func (s *screen) selectBy(n int) {
	lines := s.shown()
	if len(lines) == 0 {
		return
	}
	at := slices.IndexFunc(lines, func(l *line) bool { return l.key() == s.selected })
	s.selected = lines[min(max(0, at+n), len(lines)-1)].key()
	s.offset = 0
}

// selectTrouble selects the worst line, so that what to do about it is to be read at once.
func (s *screen) selectTrouble() {
	var worst *line
	for _, l := range s.shown() {
		if l.troubled() && (worst == nil || l.last.Result.Status > worst.last.Result.Status) {
			worst = l
		}
	}
	if worst != nil {
		s.selected = worst.key()
	}
}

// clamp keeps the selection on a line that is shown, and what is selected inside the window.
func (s *screen) clamp() {
	if !slices.ContainsFunc(s.shown(), func(l *line) bool { return l.key() == s.selected }) {
		s.selectBy(-farAway)
	}
	p := s.panes()
	entries := s.entries()
	at := slices.IndexFunc(entries, func(e entry) bool { return e.line != nil && e.line.key() == s.selected })
	if at > 0 && p.listH > 1 && entries[at-1].line == nil {
		s.top = min(s.top, at-1) // with its heading
	}
	s.top = min(s.top, at)
	s.top = max(s.top, at-p.listH+1)
	s.top = max(0, min(s.top, len(entries)-p.listH))
	s.offset = max(0, min(s.offset, len(s.detailLines(p.detailW))-p.detailH))
}

func (s *screen) listLines(w, h int) []string {
	if w < 1 || h < 1 {
		return nil
	}
	entries := s.entries()
	if len(entries) == 0 {
		return []string{s.look.faint.Render("  nothing to show")}
	}
	titles := 0
	for _, l := range s.board.lines {
		titles = max(titles, ansi.StringWidth(cleanLine(l.step.Title)))
	}
	titles = min(titles, maxTitle)
	var lines []string
	for _, e := range entries[min(s.top, len(entries)):min(s.top+h, len(entries))] {
		switch {
		case e.line != nil:
			lines = append(lines, s.row(e.line, w, titles))
		default:
			lines = append(lines, s.look.strong.Render(e.heading))
		}
	}
	return lines
}

// row is one line of the list: symbol and word, title, summary, time, as far as there is room.
func (s *screen) row(l *line, w, titles int) string {
	room := w - markWidth - signWidth
	withTime := w >= timesWidth
	if withTime {
		room -= timeWidth
	}
	title, summary := cleanLine(l.step.Title), ""
	if w >= summaryWidth {
		title = pad(cut(title, titles), titles)
		if l.stage == done {
			summary = "  " + cleanLine(l.last.Result.Summary)
		}
	}
	title = cut(title, room)
	summary = pad(cut(summary, room-ansi.StringWidth(title)-1), room-ansi.StringWidth(title))
	sign, time := s.signOf(l)
	mark, titleStyle := " ", s.look.plain
	if l.stage != running && sign.style.GetFaint() {
		titleStyle = s.look.faint
	}
	rest := titleStyle
	if l.key() == s.selected {
		mark, titleStyle = s.look.mark.Render("▌"), s.look.strong
	}
	line := mark + " " + sign.text() + "  " + titleStyle.Render(title) + rest.Render(summary)
	if withTime {
		line += s.look.faint.Render(padLeft(time, timeWidth))
	}
	return strings.TrimRight(line, " ")
}

// signOf is how far a line has come, and the time that belongs to it.
func (s *screen) signOf(l *line) (sign, string) {
	switch l.stage {
	case running:
		return sign{s.spin(), "run", s.look.busy}, elapsed(s.clock().Sub(l.began))
	case waiting:
		return s.look.waiting, ""
	default:
		return s.look.status[l.last.Result.Status], took(*l.last)
	}
}
