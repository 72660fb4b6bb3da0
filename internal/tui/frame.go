package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/spinner"
	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

// title names the program and, at the right, what goes on.
func (s *screen) title(w int) string {
	left, right := s.options.Document.heading(), s.progress()
	room := w - ansi.StringWidth(right)
	if room < 2 {
		return right
	}
	return s.look.strong.Render(pad(cut(left, room-2), room)) + right
}

func (s *screen) progress() string {
	switch {
	case s.leaving:
		return s.look.busy.Render("stopping")
	case s.busy:
		ended := len(s.settled().Rows)
		return s.look.busy.Render(s.spin()) + fmt.Sprintf(" %d of %d", ended, len(s.board.lines))
	case !s.next.IsZero():
		return fmt.Sprintf("again in %d s", int(math.Ceil(s.next.Sub(s.clock()).Seconds())))
	}
	return s.look.verdict(s.document().Report, s.options.Document.Strict) + " in " + seconds(s.board.took)
}

func (s *screen) spin() string {
	frames := spinner.MiniDot.Frames
	return frames[s.frame%len(frames)]
}

// settled is the report of the lines that neither run nor wait.
func (s *screen) settled() checks.Report {
	var r checks.Report
	for _, l := range s.board.lines {
		if l.stage == done {
			r.Rows = append(r.Rows, *l.last)
		}
	}
	return r
}

// state says how things stand, or what was just asked for; at the right, how much is out of sight.
func (s *screen) state(w int) string {
	right := s.outOfSight()
	room := w - ansi.StringWidth(right)
	return pad(cut(s.standing(room-1), room-1), room) + s.look.faint.Render(right)
}

func (s *screen) standing(room int) string {
	switch {
	case s.typing:
		return s.look.mark.Render("/") + s.filter + s.look.mark.Render("▏")
	case s.hint != "":
		return s.look.busy.Render(cleanLine(s.hint))
	}
	filtered := ""
	if s.filter != "" {
		filtered = "  filter: " + s.filter
	}
	if s.trouble {
		filtered += "  problems only"
	}
	settled := s.settled()
	text := counted(settled)
	if ansi.StringWidth(text+filtered) > room {
		text = s.look.tally(settled)
	}
	if len(settled.Rows) == 0 && s.busy {
		text = "checking"
	}
	if filtered != "" {
		text += s.look.mark.Render(filtered)
	}
	return text
}

// outOfSight is how many lines there are above and below what is shown.
func (s *screen) outOfSight() string {
	p := s.panes()
	above, below := s.top, len(s.entries())-s.top-p.listH
	switch {
	case s.help:
		return ""
	case s.detail:
		above, below = s.offset, len(s.detailLines(p.detailW))-s.offset-p.detailH
	}
	var parts []string
	if above > 0 {
		parts = append(parts, fmt.Sprintf("↑ %d", above))
	}
	if below > 0 {
		parts = append(parts, fmt.Sprintf("↓ %d", below))
	}
	return strings.Join(parts, "  ")
}

// footer names the main keys, as many as there is room for, help and quit before all others.
func (s *screen) footer(w int) string {
	bindings := []key.Binding{keys.detail, keys.run, keys.all, keys.failed, keys.filter, keys.save, keys.help, keys.quit}
	switch {
	case s.typing:
		bindings = []key.Binding{keys.keep, keys.drop}
	case s.detail:
		bindings = []key.Binding{keys.run, keys.back, keys.help, keys.quit}
	}
	for {
		parts := make([]string, len(bindings))
		for i, b := range bindings {
			parts[i] = s.look.strong.Render(b.Help().Key) + s.look.faint.Render(" "+b.Help().Desc)
		}
		line := strings.Join(parts, "  ")
		if ansi.StringWidth(line) <= w || len(bindings) == 1 {
			return line
		}
		at := max(0, len(bindings)-3)
		bindings = append(bindings[:at:at], bindings[at+1:]...)
	}
}

// helpLines lists the keys, the most wanted first, in columns where the width allows.
func (s *screen) helpLines(w, h int) []string {
	const keyWidth, columnWidth = 11, 28
	all := []key.Binding{
		keys.up, keys.detail, keys.run, keys.all, keys.failed, keys.filter, keys.trouble, keys.save, keys.copy,
		keys.back, keys.quit, keys.stop, keys.pageUp, keys.first,
	}
	lines := make([]string, max(0, min(h, len(all))))
	for i, b := range all {
		if column := i / max(1, len(lines)); column > 0 && (column+1)*columnWidth > w {
			break
		}
		cell := "  " + s.look.strong.Render(pad(b.Help().Key, keyWidth)) + b.Help().Desc
		lines[i%len(lines)] += pad(cell, columnWidth)
	}
	return lines
}
