package checks

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunner_CleansResults(t *testing.T) {
	dirty := Result{
		Status: Fail, Summary: "a key", Said: "b key", Remedy: "c key", Output: "d key",
		Facts: []Fact{{Name: "text", Value: "e key", Text: "f key"}, {Name: "list", Value: []string{"g key"}}, {Name: "number", Value: 7}},
	}
	runner := NewRunner(Options{Clean: func(text string) string { return strings.ReplaceAll(text, "key", "-") }})
	step := Step{Check: Check{ID: "x", Run: func(context.Context) Result { return dirty }}, In: Early}
	var told Result
	report := runner.Run(t.Context(), []Step{step}, func(e Event) {
		if f, ok := e.(Finished); ok {
			told = f.Row.Result
		}
	})
	want := Result{
		Status: Fail, Summary: "a -", Said: "b -", Remedy: "c -", Output: "d -",
		Facts: []Fact{{Name: "text", Value: "e -", Text: "f -"}, {Name: "list", Value: []string{"g -"}}, {Name: "number", Value: 7}},
	}
	require.Equal(t, want, told)
	require.Equal(t, want, report.Rows[0].Result)
	require.Equal(t, "e key", dirty.Facts[0].Value, "the check's own is left alone")
}
