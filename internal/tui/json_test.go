package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func document() Document {
	return Document{
		Title: "runpodctl-worker doctor", Version: "1.2.3",
		Host:   []checks.Fact{{Name: "os", Value: "Linux"}, {Name: "cores", Value: 16}},
		Report: checks.Report{Began: noon, Took: 2345678 * time.Microsecond, Rows: scene()},
	}
}

func TestJSON_Golden(t *testing.T) {
	var text strings.Builder
	require.NoError(t, JSON(&text, document()))
	requireGolden(t, "json", text.String())
}

func TestJSON_NothingChecked(t *testing.T) {
	var text strings.Builder
	require.NoError(t, JSON(&text, Document{}))
	require.JSONEq(t, `{"schema": 1, "version": "", "host": {}, "started": "0001-01-01T00:00:00Z", "ms": 0, "ok": true,
		"counts": {"pass": 0, "skip": 0, "warn": 0, "error": 0, "fail": 0}, "checks": []}`, text.String())
}

func TestJSON_Values(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		want  string
	}{
		"integer":         {uint64(math.MaxUint64), "18446744073709551615"},
		"number":          {1.5, "1.5"},
		"not a number":    {math.NaN(), "null"},
		"infinite":        {math.Inf(-1), "null"},
		"infinite float":  {float32(math.Inf(1)), "null"},
		"nothing":         {nil, "null"},
		"bool":            {true, "true"},
		"list":            {[]float64{1, math.NaN()}, "[1,null]"},
		"list of lists":   {[][]string{{"a"}, nil}, `[["a"],[]]`},
		"list of any":     {[]any{1, "a", nil}, `[1,"a",null]`},
		"duration":        {5 * time.Second, `"5s"`},
		"version":         {checks.Version{Major: 12, Minor: 8}, `"12.8"`},
		"map":             {map[string]int{"a": 1}, `"map[a:1]"`},
		"function":        {errors.New, ""},
		"markup":          {"<a href=\"?x&y\">", `"<a href=\"?x&y\">"`},
		"control":         {"\x1b[31m\x00", `"\u001b[31m\u0000"`},
		"not UTF-8":       {"a\xff", `"a\ufffd"`},
		"line separators": {"\u2028", `"\u2028"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := Document{Report: checks.Report{Rows: []checks.Row{{Result: checks.Result{
				Facts:     []checks.Fact{{Name: "value", Value: tt.value}},
				Threshold: &checks.Threshold{Value: tt.value},
			}}}}}
			var text strings.Builder
			require.NoError(t, JSON(&text, d))
			require.True(t, json.Valid([]byte(text.String())))
			if tt.want == "" {
				return
			}
			var back struct {
				Checks []struct {
					Facts     map[string]json.RawMessage
					Threshold map[string]json.RawMessage
				}
			}
			require.NoError(t, json.Unmarshal([]byte(text.String()), &back))
			for _, got := range []json.RawMessage{back.Checks[0].Facts["value"], back.Checks[0].Threshold["value"]} {
				var compact bytes.Buffer
				require.NoError(t, json.Compact(&compact, got))
				require.Equal(t, tt.want, compact.String())
			}
		})
	}
}

func TestJSON_FactsKeepTheirOrder(t *testing.T) {
	got, err := facts{{Name: "b", Value: 1}, {Name: "a", Value: 2}, {Name: "b", Value: 3}, {Name: "<c>", Value: 4}}.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"a":2,"b":3,"<c>":4}`, string(got))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestJSON_SaysWhatFailed(t *testing.T) {
	require.EqualError(t, JSON(brokenWriter{}, document()), "write the report: no space left")
}
