package tui

import (
	"strings"

	"runpodctl-worker/internal/checks"
)

// Document is a report together with what it is about.
type Document struct {
	Title   string // of the program
	Version string // of it
	Host    []checks.Fact
	Report  checks.Report
	Strict  bool // warnings make it unfit as well
}

func (d Document) heading() string { return cleanLine(d.Title + " " + d.Version) }

// OK tells whether the box is known to be fit for a worker.
func (d Document) OK() bool {
	return d.Report.OK(d.Strict)
}

// Text is the document for people, without colour: the lines that Plain writes.
func (d Document) Text() string { return d.text(0, false) }

func (d Document) text(width int, color bool) string {
	var text strings.Builder
	o := PlainOptions{Title: d.heading(), Host: d.Host, Width: width, Color: color, Strict: d.Strict}
	for _, row := range d.Report.Rows {
		o.Steps = append(o.Steps, row.Step)
	}
	event := Plain(&text, o)
	for _, row := range d.Report.Rows {
		event(checks.Finished{Row: row})
	}
	event(checks.Ended{Report: d.Report})
	return text.String()
}
