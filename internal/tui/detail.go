package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

const maxFactName = 28

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
	if l == nil || w < 1 {
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
	section(paragraph(res.Summary, w)...)
	section(s.remedy(res, w)...)
	if res.Threshold != nil {
		section(s.labelled("wanted", wanted(res.Threshold), len("wanted"), w)...)
	}
	section(s.facts(res.Facts, w)...)
	section(s.output(res.Output, w)...)
	return lines
}

// paragraph wraps a check's text.
func paragraph(text string, w int) []string {
	if text = clean(text); text == "" {
		return nil
	}
	return wrap(text, w)
}

func (s *screen) remedy(res checks.Result, w int) []string {
	lines := paragraph(res.Remedy, w-2)
	for i, line := range lines {
		switch i {
		case 0:
			lines[i] = s.look.mark.Render("→") + " " + line
		default:
			lines[i] = "  " + line
		}
	}
	return lines
}

func (s *screen) facts(facts []checks.Fact, w int) []string {
	width := 0
	for _, f := range facts {
		width = max(width, ansi.StringWidth(cleanLine(f.Name)))
	}
	width = min(width, maxFactName, max(1, w/2))
	var lines []string
	for _, f := range facts {
		lines = append(lines, s.labelled(cleanLine(f.Name), f.String(), width, w)...)
	}
	return lines
}

// labelled is a value with its name before it; where it needs more lines, they stand beneath the value.
func (s *screen) labelled(name, value string, width, w int) []string {
	lines := paragraph(value, max(1, w-width-2))
	if len(lines) == 0 {
		lines = []string{""}
	}
	name = s.look.faint.Render(pad(cut(name, width), width))
	for i := range lines {
		lines[i] = name + "  " + lines[i]
		name = strings.Repeat(" ", width)
	}
	return lines
}

func (s *screen) output(output string, w int) []string {
	output = clean(output)
	if output == "" || w < 3 {
		return nil
	}
	lines := strings.Split(ansi.Hardwrap(output, w-2, true), "\n")
	for i := range lines {
		lines[i] = s.look.faint.Render("│ ") + lines[i]
	}
	return lines
}
