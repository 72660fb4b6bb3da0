package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

const (
	maxFactName = 28
	maxOutput   = 1000 // lines
)

// detailPane is the part of the detail that the window has room for.
func (s *screen) detailPane(w, h int) []string {
	if w < 1 || h < 1 {
		return nil
	}
	lines := s.detailLines(w)
	if s.detail {
		return lines[min(s.offset, len(lines)):min(s.offset+h, len(lines))]
	}
	if len(lines) > h { // what is said comes before the air around it
		lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	}
	if len(lines) > h {
		lines = append(lines[:h-1:h-1], s.look.faint.Render("… enter shows the rest"))
	}
	return lines
}

// detailLines are all that is known of the selected line.
func (s *screen) detailLines(w int) []string {
	l := s.board.find(s.selected)
	if l == nil || !s.matches(l) || w < 1 {
		return nil
	}
	sign, time := s.signOf(l)
	about := []string{cleanLine(l.step.ID), l.step.In.String()}
	if time != "" {
		about = append(about, time)
	}
	lines := []string{
		strings.TrimRight(sign.text(), " ") + "  " + s.look.strong.Render(cleanLine(l.step.Title)),
		s.look.faint.Render(cut(strings.Join(about, " · "), w)),
	}
	if l.stage != done {
		return lines
	}
	res := l.last.Result
	section := func(part ...string) {
		if len(part) > 0 {
			lines = append(append(lines, ""), part...)
		}
	}
	section(paragraph("", res.Summary, w)...)
	section(paragraph(s.look.mark.Render("→")+" ", res.Remedy, w)...)
	if res.Threshold != nil {
		section(paragraph(s.look.faint.Render("wanted")+"  ", wanted(res.Threshold), w)...)
	}
	section(s.facts(res.Facts, w)...)
	section(s.output(res.Output, w)...)
	return lines
}

// paragraph is a check's text behind a prefix.
func paragraph(prefix, text string, w int) []string {
	if text = clean(text); text == "" {
		return nil
	}
	return hang(prefix, text, w)
}

func (s *screen) facts(facts []checks.Fact, w int) []string {
	width := 0
	for _, f := range facts {
		width = max(width, ansi.StringWidth(cleanLine(f.Name)))
	}
	width = min(width, maxFactName, max(1, w/2))
	var lines []string
	for _, f := range facts {
		name := s.look.faint.Render(pad(cut(cleanLine(f.Name), width), width))
		lines = append(lines, hang(name+"  ", clean(f.String()), w)...)
	}
	return lines
}

func (s *screen) output(output string, w int) []string {
	if w < 3 {
		return nil
	}
	var lines []string
	for _, line := range tail(output, maxOutput) {
		for part := range strings.SplitSeq(ansi.Hardwrap(line, w-2, true), "\n") {
			lines = append(lines, s.look.faint.Render("│ ")+part)
		}
	}
	return lines
}
