package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

// pad fills text up with spaces to a width in cells.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// padLeft is pad with the spaces in front.
func padLeft(text string, width int) string {
	return strings.Repeat(" ", max(0, width-ansi.StringWidth(text))) + text
}

// cut shortens text to a width in cells.
func cut(text string, width int) string { return ansi.Truncate(text, max(0, width), "…") }

// hang puts text behind a prefix, broken into lines of a width between words where it can; the further lines stand
// beneath the text. No width leaves the lines as they are.
func hang(prefix, text string, width int) []string {
	if width > 0 {
		text = ansi.Wrap(text, max(1, width-ansi.StringWidth(prefix)), "")
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = prefix + lines[i]
		prefix = strings.Repeat(" ", ansi.StringWidth(prefix))
	}
	return lines
}

// timeWidth is the room that a time takes: "59.99 s", "100m 00s".
const timeWidth = 8

func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
}

// elapsed is the time of what still runs; hundredths would only flicker.
func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", max(0, d.Seconds()))
	}
	return seconds(d)
}

// took is how long a step ran; empty where it never did.
func took(row checks.Row) string {
	if row.Took <= 0 {
		return ""
	}
	return seconds(row.Took)
}

// counted is a report in a few words: "6 passed, 1 warning, 1 failed".
func counted(r checks.Report) string {
	var parts []string
	add := func(s checks.Status, one, many string) {
		switch n := r.Count(s); n {
		case 0:
		case 1:
			parts = append(parts, "1 "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(checks.Pass, "passed", "passed")
	add(checks.Warn, "warning", "warnings")
	add(checks.Error, "could not run", "could not run")
	add(checks.Fail, "failed", "failed")
	add(checks.Skip, "skipped", "skipped")
	if len(parts) == 0 {
		return "nothing was checked"
	}
	return strings.Join(parts, ", ")
}

var phaseTitles = map[checks.Phase]string{
	checks.Early: "Early checks",
	checks.Start: "Start checks",
}

// about is the facts of the host on one line.
func about(host []checks.Fact) string {
	parts := make([]string, 0, len(host))
	for _, f := range host {
		if text := cleanLine(f.String()); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " · ")
}

// wanted is what a check was held against, and who says so.
func wanted(t *checks.Threshold) string {
	text := cleanLine(t.Text)
	if origin := cleanLine(t.Origin); origin != "" {
		text += " (" + origin + ")"
	}
	return text
}
