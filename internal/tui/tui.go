// Package tui shows a run of checks to people and to programs: a screen, plain lines and JSON, all from the same events.
package tui

import (
	"os"

	"golang.org/x/term"

	"runpodctl-worker/internal/tui/quiet"
)

// This package stands above bubbletea, so it initialises after it.
func init() { quiet.Restore() }

// Interactive tells whether a screen makes sense: somebody sits at a terminal that can move its cursor.
func Interactive(in, out *os.File, lookup func(string) (string, bool)) bool {
	if ci, _ := lookup("CI"); ci != "" && ci != "false" && ci != "0" {
		return false
	}
	if kind, _ := lookup("TERM"); kind == "dumb" {
		return false
	}
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}
