package tui

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"runpodctl-worker/internal/checks"
)

// PlainOptions say how the plain lines look.
type PlainOptions struct {
	Title string        // first line
	Host  []checks.Fact // beneath it
	Steps []checks.Step // what will run, so that the columns are wide enough from the start
	Width int           // of the terminal, to break lines between words; 0: lines are not broken
	Color bool

	Strict bool // warnings make the box unfit as well
}

const (
	minIDWidth, maxIDWidth = 8, 24
	minWidth               = 60 // below, the columns leave no room to break lines in
	maxTail                = 20 // lines of a check's output that are shown
)

// Plain returns a renderer that writes one line for each check as it ends, for terminals without a screen, for logs and
// for pipes.
func Plain(w io.Writer, o PlainOptions) func(checks.Event) {
	p := &plain{w: w, look: newLook(o.Color), idWidth: minIDWidth, width: o.Width, strict: o.Strict}
	if o.Width < minWidth {
		p.width = 0
	}
	for _, s := range o.Steps {
		p.fit(s.ID)
	}
	if o.Title != "" {
		fmt.Fprintln(w, p.look.strong.Render(cleanLine(o.Title)))
	}
	if host := about(o.Host); host != "" {
		fmt.Fprintln(w, strings.Join(hang("", host, p.width), "\n"))
	}
	return p.event
}

type plain struct {
	w       io.Writer
	look    look
	idWidth int
	width   int
	phase   checks.Phase // whose heading was written last
	strict  bool
}

// fit makes the column of ids wide enough for one more.
func (p *plain) fit(id string) {
	p.idWidth = min(maxIDWidth, max(p.idWidth, ansi.StringWidth(cleanLine(id))))
}

func (p *plain) event(e checks.Event) {
	switch e := e.(type) {
	case checks.Finished:
		fmt.Fprint(p.w, p.row(e.Row)) // in one piece: something else may be written to the same terminal
	case checks.Found:
		for _, s := range e.Steps {
			p.fit(s.ID)
		}
	case checks.Ended:
		p.phase = 0
		fmt.Fprintf(p.w, "\n%s: %s in %s\n", p.look.verdict(e.Report, p.strict), counted(e.Report), seconds(e.Report.Took))
	}
}

func (p *plain) row(row checks.Row) string {
	var text strings.Builder
	if p.phase != row.Step.In {
		p.phase = row.Step.In
		fmt.Fprintf(&text, "\n%s\n", p.look.strong.Render(phaseTitles[p.phase]))
	}
	res := row.Result
	line := fmt.Sprintf("  %s  %s  %s  ", p.look.status[res.Status].text(), pad(cleanLine(row.Step.ID), p.idWidth),
		padLeft(took(row), timeWidth))
	lines := hang(line, cleanLine(res.Summary), p.width)
	if res.Status != checks.Pass && res.Status != checks.Skip {
		lines = append(lines, p.trouble(res)...)
	}
	text.WriteString(strings.Join(lines, "\n") + "\n")
	return text.String()
}

// trouble is what to do about a result, and what there is to find out more by.
func (p *plain) trouble(res checks.Result) []string {
	const indent = "           "
	var lines []string
	if remedy := clean(res.Remedy); remedy != "" {
		lines = hang(indent+"→ ", remedy, p.width)
	}
	if res.Threshold != nil {
		lines = append(lines, hang(indent+p.look.faint.Render("wanted: "), wanted(res.Threshold), p.width)...)
	}
	for _, line := range tail(res.Output, maxTail) {
		lines = append(lines, indent+p.look.faint.Render("│ ")+line)
	}
	return lines
}
