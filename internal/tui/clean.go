package tui

import (
	"fmt"
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

// maxTailBytes bounds the work for one screen, whatever a check prints.
const maxTailBytes = 64 << 10

// tail is the end of what a check printed, in so many lines at most. All of it is in the JSON document.
func tail(output string, most int) []string {
	output = strings.TrimRight(output, "\r\n")
	kept := strings.Split(output[max(0, len(output)-maxTailBytes):], "\n")
	end := strings.Join(kept[max(0, len(kept)-most):], "\n")
	text := clean(end)
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	if before := strings.Count(output[:len(output)-len(end)], "\n"); before > 0 {
		lines = append([]string{fmt.Sprintf("… %d more above", before)}, lines...)
	}
	return lines
}
