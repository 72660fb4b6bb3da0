package tui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// The screen, from above: title and host, the list with the detail beside or beneath it, a line that says how things
// stand, and the keys. What a small window has no room for is left out, the list last.
const (
	roomyHeight = 14 // all of it
	smallHeight = 8  // no host, no empty lines
	tinyHeight  = 4  // the list and how things stand

	besideWidth   = 120 // the detail stands beside the list
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
		return s.helpLines(w, s.bodyHeight())
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
