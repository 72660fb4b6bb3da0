package tui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

const tabWidth = 4

// clean makes a check's text safe to show: lines of printable characters, whatever a tool or a handler printed. Escape
// sequences are taken out line by line, so that one that never ends hides no more than its own line.
func clean(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:] // of a progress bar, what was left standing
		lines[i] = strings.TrimRight(strings.Map(printable, expand(ansi.Strip(strings.ToValidUTF8(line, "\uFFFD")))), " ")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// cleanLine is clean for what has one line to stand in.
func cleanLine(text string) string {
	return strings.Join(strings.Fields(clean(text)), " ")
}

func expand(line string) string { return strings.ReplaceAll(line, "\t", strings.Repeat(" ", tabWidth)) }

// printable drops what a terminal would obey instead of show, and what turns the order of letters around.
func printable(r rune) rune {
	switch {
	case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control), r == '\u2028', r == '\u2029', r == '\uFEFF':
		return -1
	}
	return r
}
