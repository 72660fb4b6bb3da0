package program_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// A long text goes around Python's encoder where it holds nothing to escape. Nobody may see a difference.
func TestLongTexts(t *testing.T) {
	const long = 100_000
	x := strings.Repeat("x", long)
	tests := []struct {
		name, value string // a Python expression
		output      any
		err         string // a part of the error
	}{
		{"alone", `"x" * 100000`, x, ""},
		{"wide", `"漢👍" * 100000`, strings.Repeat("漢👍", long), ""},
		{"in a dict", `{"a": 1, "x": "x" * 100000, "y": "é" * 100000, "z": [2]}`, map[string]any{"a": 1.0, "x": x, "y": strings.Repeat("é", long), "z": []any{2.0}}, ""},
		{"in a list of a dict", `{"images": ["x" * 100000, "", "x" * 100000]}`, map[string]any{"images": []any{x, "", x}}, ""},
		{"too deep for that", `[[[["x" * 100000]]]]`, []any{[]any{[]any{[]any{x}}}}, ""},
		{"among many", `["x" * 100000] + [0] * 16`, []any{x, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0}, ""},
		{"a quote at the end", `"x" * 100000 + '"'`, x + `"`, ""},
		{"a backslash at the beginning", `"\\" + "x" * 100000`, `\` + x, ""},
		{"a newline in the middle", `"x" * 100000 + "\n" + "x" * 100000`, x + "\n" + x, ""},
		{"the last control character", `"x" * 100000 + "\x1f"`, x + "\x1f", ""},
		{"a lone surrogate", `{"text": "x" * 100000 + "\ud83d"}`, nil, `output.text: lone surrogate '\ud83d' is not valid text`},
		{"beside what is not JSON", `{"text": "x" * 100000, "set": {1}}`, nil, "output.set: set is not JSON"},
		{"an error beside it", `{"error": "bad", "x": "x" * 100000}`, map[string]any{"x": x}, "bad"},
	}
	c := startFile(t, handlerFile("results.py"))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _ := c.do(`{"return":` + string(protocol.Quote(tt.value)) + `}`)
			if tt.err == "" {
				require.Empty(t, out.Error)
			} else {
				require.Contains(t, out.Error, tt.err)
			}
			if tt.output == nil {
				require.Nil(t, out.Output)
				return
			}
			var output any
			require.NoError(t, json.Unmarshal(out.Output, &output))
			require.True(t, reflect.DeepEqual(tt.output, output), "%.100s", out.Output) // a diff would be as long
		})
	}
}
