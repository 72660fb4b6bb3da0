package tui

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestDocument_OK(t *testing.T) {
	row := func(s checks.Status, vital bool) checks.Row {
		return checks.Row{Step: checks.Step{Check: checks.Check{Vital: vital}}, Result: checks.Result{Status: s}}
	}
	for name, tt := range map[string]struct {
		row        checks.Row
		ok, strict bool
	}{
		"passed":                    {row(checks.Pass, true), true, true},
		"skipped":                   {row(checks.Skip, true), true, true},
		"warning":                   {row(checks.Warn, true), true, false},
		"could not run":             {row(checks.Error, false), true, false},
		"could not run, but has to": {row(checks.Error, true), false, false},
		"failed":                    {row(checks.Fail, false), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := Document{Report: checks.Report{Rows: []checks.Row{tt.row}}}
			require.Equal(t, tt.ok, d.OK())
			d.Strict = true
			require.Equal(t, tt.strict, d.OK())
			d.Strict, d.Report.Interrupted = false, true
			require.False(t, d.OK(), "nobody knows yet")
		})
	}
}

func TestDocument_Text(t *testing.T) {
	text := document().Text()
	require.Contains(t, text, "runpodctl-worker doctor 1.2.3\nLinux · 16\n\nEarly checks\n")
	require.Contains(t, text, "7 passed, 2 warnings, 1 could not run, 1 failed, 1 skipped in 2.35 s\n")
	require.NotContains(t, text, "\x1b")
}
