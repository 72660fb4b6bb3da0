package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestPlain_Golden(t *testing.T) {
	for name, o := range map[string]PlainOptions{
		"plain":        {},
		"plain width":  {Width: 80},
		"plain narrow": {Width: 30},
		"plain colour": {Color: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Title, o.Host, o.Steps = "runpodctl-worker doctor 1.2.3", newRig(Options{}).options.Document.Host, planOf(scene())
			var text strings.Builder
			event := Plain(&text, o)
			for _, row := range scene() {
				event(checks.Started{Step: row.Step, At: noon})
				event(checks.Finished{Row: row})
			}
			event(checks.Ended{Report: checks.Report{Took: 2345 * time.Millisecond, Rows: scene()}})
			requireGolden(t, name, strings.ReplaceAll(text.String(), "\x1b", "␛"))
		})
	}
}

func TestPlain_OneLineAsEachEnds(t *testing.T) {
	var text strings.Builder
	event := Plain(&text, PlainOptions{})
	rows := scene()
	event(checks.Started{Step: rows[0].Step})
	require.Empty(t, text.String())
	event(checks.Finished{Row: rows[0]})
	require.Equal(t, "\nEarly checks\n  ✓ PASS   memory      0.00 s  184.9 GB available of 247.5 GB\n", text.String())
}

func TestPlain_RunsAgain(t *testing.T) {
	var text strings.Builder
	event := Plain(&text, PlainOptions{})
	for range 2 {
		event(checks.Finished{Row: scene()[0]})
		event(checks.Ended{Report: checks.Report{Rows: scene()[:1]}})
	}
	require.Equal(t, 2, strings.Count(text.String(), "Early checks\n"))
	require.Equal(t, 2, strings.Count(text.String(), "1 passed in 0.00 s\n"))
}

func TestPlain_NothingOfACheckReachesTheTerminal(t *testing.T) {
	var text strings.Builder
	event := Plain(&text, PlainOptions{Title: "a\x1b[2Jb", Host: []checks.Fact{{Value: "c\x1b]0;x\ad"}}})
	for _, row := range hostileRows() {
		event(checks.Finished{Row: row})
	}
	require.NotContains(t, text.String(), "\x1b")
	require.NotContains(t, text.String(), "\r")
	require.Contains(t, text.String(), "ab\ncd\n")
}

func TestPlain_LongOutputIsCutInFront(t *testing.T) {
	var text strings.Builder
	Plain(&text, PlainOptions{})(checks.Finished{Row: checks.Row{
		Step:   checks.Step{In: checks.Early},
		Result: checks.Result{Status: checks.Fail, Output: strings.Repeat("line\n", 30) + "last\n"},
	}})
	require.Contains(t, text.String(), "│ … 11 more above\n")
	require.True(t, strings.HasSuffix(text.String(), "│ last\n"))
	require.Equal(t, maxTail-1, strings.Count(text.String(), "│ line\n"))
}

func TestCounted(t *testing.T) {
	report := func(list ...checks.Status) checks.Report {
		var r checks.Report
		for _, s := range list {
			r.Rows = append(r.Rows, checks.Row{Result: checks.Result{Status: s}})
		}
		return r
	}
	for want, r := range map[string]checks.Report{
		"nothing was checked":           report(),
		"1 passed":                      report(checks.Pass),
		"2 passed, 1 warning, 1 failed": report(checks.Pass, checks.Fail, checks.Pass, checks.Warn),
		"2 warnings, 1 skipped":         report(checks.Warn, checks.Skip, checks.Warn),
		"2 could not run, 2 failed":     report(checks.Error, checks.Fail, checks.Error, checks.Fail),
	} {
		require.Equal(t, want, counted(r))
	}
}

func TestSeconds(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0.00 s": 0, "0.41 s": 410 * time.Millisecond, "12.3 s": 12345 * time.Millisecond,
		"1m 05s": 65 * time.Second, "100m 00s": 100 * time.Minute,
	} {
		require.Equal(t, want, seconds(d))
	}
}

func TestPlain_WhatIsFoundStandsInColumns(t *testing.T) {
	step := func(id string) checks.Step { return checks.Step{Check: checks.Check{ID: id}, In: checks.Start} }
	finder, found := step("handler"), []checks.Step{step("yours.good"), step("yours.other_one")}
	var text strings.Builder
	event := Plain(&text, PlainOptions{Steps: []checks.Step{finder}})
	event(checks.Finished{Row: checks.Row{Step: finder}})
	event(checks.Found{After: finder.Key(), Steps: found})
	for _, s := range found {
		event(checks.Finished{Row: checks.Row{Step: s, Result: checks.Result{Summary: "passed"}}})
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, strings.Index(lines[2], "passed"), strings.Index(lines[3], "passed"))
}
