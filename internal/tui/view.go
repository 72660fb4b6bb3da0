package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/spinner"
	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

// The screen, from above: title and host, the list with the detail beside or beneath it, a line that says how things
// stand, and the keys. What a small window has no room for is left out, the list last.
const (
	roomyHeight = 14 // all of it
	smallHeight = 8  // no host, no empty lines
	tinyHeight  = 4  // the list and how things stand

	besideWidth   = 110 // the detail stands beside the list
	beneathHeight = 13  // of the body: the detail stands beneath it
	minDetail     = 6   // its height there

	divider = " │ "
)

// size is the size of the window. A terminal that knows none, as on a serial line, says 0×0.
func (s *screen) size() (w, h int) {
	if s.width <= 0 && s.height <= 0 {
		return 80, 24
	}
	return max(0, s.width), max(0, s.height)
}

func (s *screen) bodyHeight() int {
	_, h := s.size()
	switch {
	case h >= roomyHeight:
		return h - 6
	case h >= smallHeight:
		return h - 3
	case h >= tinyHeight:
		return h - 1
	}
	return h
}

// panes are the sizes of list and detail; what is not shown has none.
type panes struct {
	listW, listH, detailW, detailH int
}

func (s *screen) panes() panes {
	w, _ := s.size()
	h := s.bodyHeight()
	switch {
	case s.detail:
		return panes{detailW: w, detailH: h}
	case w >= besideWidth:
		list := w * 11 / 20
		return panes{listW: list, listH: h, detailW: w - list - ansi.StringWidth(divider), detailH: h}
	case h >= beneathHeight:
		list := max(1, min(len(s.entries()), h-1-max(minDetail, h*2/5)))
		return panes{listW: w, listH: list, detailW: w, detailH: h - 1 - list}
	}
	return panes{listW: w, listH: h}
}

// View draws the screen. No line is wider than the window, whatever the checks are called and say.
func (s *screen) View() string {
	w, h := s.size()
	var lines []string
	if h >= smallHeight {
		lines = append(lines, s.title(w))
	}
	if h >= roomyHeight {
		lines = append(lines, s.look.faint.Render(cut(about(s.options.Document.Host), w)), "")
	}
	lines = append(lines, fill(s.body(w), s.bodyHeight())...)
	if h >= roomyHeight {
		lines = append(lines, "")
	}
	if h >= tinyHeight {
		lines = append(lines, s.state(w))
	}
	if h >= smallHeight {
		lines = append(lines, s.footer(w))
	}
	for i := range lines {
		lines[i] = cut(lines[i], w)
	}
	return strings.Join(fill(lines, h), "\n")
}

func (s *screen) body(w int) []string {
	if s.help {
		return s.helpLines(s.bodyHeight())
	}
	p := s.panes()
	list := s.listLines(p.listW, p.listH)
	detail := s.detailPane(p.detailW, p.detailH)
	switch {
	case p.listH == 0:
		return detail
	case p.detailH == 0:
		return list
	case p.listW == w:
		return append(append(fill(list, p.listH), s.look.faint.Render(strings.Repeat("─", w))), detail...)
	}
	list, detail = fill(list, p.listH), fill(detail, p.detailH)
	for i := range list {
		list[i] = pad(cut(list[i], p.listW), p.listW) + s.look.faint.Render(divider) + detail[i]
	}
	return list
}

// fill makes it exactly n lines.
func fill(lines []string, n int) []string {
	for len(lines) < n {
		lines = append(lines, "")
	}
	return lines[:max(0, n)]
}

// title names the program and, at the right, what goes on.
func (s *screen) title(w int) string {
	left, right := cleanLine(s.options.Document.Title), s.progress()
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
		return fmt.Sprintf("again in %d s", int(s.next.Sub(s.clock())/time.Second)+1)
	}
	return "in " + seconds(s.board.took)
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

// state says how things stand, or what was just asked for; at the right, how much of the list is out of sight.
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
	return text + s.look.mark.Render(filtered)
}

func (s *screen) outOfSight() string {
	p := s.panes()
	if s.help || p.listH == 0 {
		return ""
	}
	above, below := s.top, len(s.entries())-s.top-p.listH
	text := ""
	if above > 0 {
		text = fmt.Sprintf("↑ %d", above)
	}
	if below > 0 {
		text = strings.TrimLeft(text+fmt.Sprintf("  ↓ %d", below), " ")
	}
	return text
}

// footer names the main keys, as many as there is room for, help and quit before all others.
func (s *screen) footer(w int) string {
	bindings := []key.Binding{keys.detail, keys.run, keys.all, keys.failed, keys.filter, keys.save, keys.help, keys.quit}
	if s.detail {
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

// helpLines lists all keys, in columns where they are many for the height.
func (s *screen) helpLines(h int) []string {
	const keyWidth, columnWidth = 8, 28
	all := []key.Binding{
		keys.up, keys.down, keys.pageUp, keys.pageDown, keys.first, keys.last, keys.detail, keys.run, keys.all,
		keys.failed, keys.filter, keys.trouble, keys.copy, keys.save, keys.back, keys.quit, keys.stop,
	}
	lines := make([]string, max(0, min(h, len(all))))
	for i, b := range all {
		if len(lines) == 0 {
			break
		}
		cell := "  " + s.look.strong.Render(pad(b.Help().Key, keyWidth)) + b.Help().Desc
		lines[i%len(lines)] += pad(cell, columnWidth)
	}
	return lines
}
