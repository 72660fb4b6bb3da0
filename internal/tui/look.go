package tui

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"

	"runpodctl-worker/internal/checks"
)

// sign is how a status is shown: never by colour alone.
type sign struct {
	symbol, word string
	style        lipgloss.Style
}

const wordWidth = 5

// look holds the styles: the sixteen colours of the terminal's own palette, which its owner can read on any background.
type look struct {
	plain, strong, faint, busy, mark lipgloss.Style
	status                           map[checks.Status]sign
	waiting                          sign
}

func newLook(color bool) look {
	r := lipgloss.NewRenderer(io.Discard) // never the default one, which might ask the terminal
	r.SetColorProfile(termenv.Ascii)
	if color {
		r.SetColorProfile(termenv.ANSI)
	}
	style := func() lipgloss.Style { return r.NewStyle().Inline(true) }
	const red, green, yellow, cyan = lipgloss.Color("1"), lipgloss.Color("2"), lipgloss.Color("3"), lipgloss.Color("6")
	faint := style().Faint(true)
	return look{
		plain:  style(),
		strong: style().Bold(true),
		faint:  faint,
		busy:   style().Foreground(cyan),
		mark:   style().Foreground(cyan).Bold(true),
		status: map[checks.Status]sign{
			checks.Pass:  {"✓", "PASS", style().Foreground(green)},
			checks.Skip:  {"–", "SKIP", faint},
			checks.Warn:  {"!", "WARN", style().Foreground(yellow)},
			checks.Error: {"?", "ERROR", style().Foreground(red)},
			checks.Fail:  {"✗", "FAIL", style().Foreground(red).Bold(true)},
		},
		waiting: sign{"·", "wait", faint},
	}
}

// verdict is what a report comes to, in a word.
func (l look) verdict(r checks.Report, strict bool) string {
	switch {
	case r.Interrupted:
		return l.strong.Render("interrupted")
	case r.OK(strict):
		return l.status[checks.Pass].style.Render("fit")
	}
	return l.status[checks.Fail].style.Render("unfit")
}

// text is symbol and word, in one width for all.
func (s sign) text() string { return s.style.Render(s.symbol + " " + pad(s.word, wordWidth)) }

// tally is a report in the fewest cells: "✗ 1  ! 1  ✓ 6".
func (l look) tally(r checks.Report) string {
	var parts []string
	for _, status := range []checks.Status{checks.Fail, checks.Error, checks.Warn, checks.Pass, checks.Skip} {
		if n := r.Count(status); n > 0 {
			sign := l.status[status]
			parts = append(parts, sign.style.Render(fmt.Sprintf("%s %d", sign.symbol, n)))
		}
	}
	return strings.Join(parts, "  ")
}
