package server

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestParseReport(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, row := range map[string]struct {
		body string
		want report
		bad  string // part of the refusal
	}{
		"output":              {`{"output":{"b":1,"a":[1.0,2e3]}}`, report{Output: raw(`{"b":1,"a":[1.0,2e3]}`)}, ""},
		"null":                {`{"output": null}`, report{Output: raw(`null`)}, ""},
		"empty object":        {`{"output":{}}`, report{Output: raw(`{}`)}, ""},
		"empty array":         {`{"output":[]}`, report{Output: raw(`[]`)}, ""},
		"empty string":        {`{"output":""}`, report{Output: raw(`""`)}, ""},
		"zero":                {`{"output":0}`, report{Output: raw(`0`)}, ""},
		"false":               {`{"output":false}`, report{Output: raw(`false`)}, ""},
		"no output":           {`{}`, report{}, ""},
		"big number":          {`{"output":123456789012345678901234567890}`, report{Output: raw(`123456789012345678901234567890`)}, ""},
		"lone surrogate":      {`{"output":"\ud800"}`, report{Output: raw(`"\ud800"`)}, ""},
		"error":               {`{"error":"bo\"om"}`, report{Error: `bo"om`}, ""},
		"both":                {`{"output":1,"error":"boom"}`, report{Output: raw(`1`), Error: "boom"}, ""},
		"error null":          {`{"output":1,"error":null}`, report{Output: raw(`1`)}, ""},
		"error empty":         {`{"output":1,"error":""}`, report{Output: raw(`1`)}, ""},
		"progress":            {`{"status":"IN_PROGRESS","output":5}`, report{Output: raw(`5`), Status: protocol.InProgress}, ""},
		"stop pod":            {`{"output":1,"stopPod":true}`, report{Output: raw(`1`), StopPod: true}, ""},
		"unknown keys":        {`{"output":1,"x":[{}]}`, report{Output: raw(`1`)}, ""},
		"error object":        {`{"error":{"a":1}}`, report{}, "error: must be a JSON string"},
		"error number":        {`{"error":1}`, report{}, "error: must be a JSON string"},
		"error false":         {`{"error":false}`, report{}, "error: must be a JSON string"},
		"NaN":                 {`{"output":NaN}`, report{}, "body: "},
		"Infinity":            {`{"output":-Infinity}`, report{}, "body: "},
		"cut":                 {`{"output":`, report{}, "body: "},
		"two documents":       {`{"output":1}{}`, report{}, "body: "},
		"a form":              {`output=1`, report{}, "not a JSON object"},
		"an array":            {`[1]`, report{}, "not a JSON object"},
		"null itself":         {`null`, report{}, "not a JSON object"},
		"nothing":             {``, report{}, "not a JSON object"},
		"stopPod not boolean": {`{"stopPod":"yes"}`, report{}, "stopPod: cannot be a JSON string"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseReport([]byte(row.body))
			if row.bad == "" {
				require.NoError(t, err)
				require.Equal(t, row.want, got)
				return
			}
			var bad protocol.BadRequestError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, row.bad)
		})
	}
}

func FuzzParseReport(f *testing.F) {
	for _, s := range []string{`{"output":1}`, `{"error":"x","output":[]}`, `{"status":"IN_PROGRESS"}`, `{"error":1}`, ` {"output" : null }`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		rep, err := parseReport(body)
		if err != nil {
			return
		}
		require.True(t, json.Valid(body))
		if rep.Output != nil {
			require.True(t, json.Valid(rep.Output))
			require.True(t, bytes.Contains(body, rep.Output), "the output is not a part of the body as it was sent")
		}
	})
}

// An announced length claims no memory before its bytes have come.
func TestReadBody_BelievesNoLength(t *testing.T) {
	tests := []struct {
		name   string
		length int64
		limit  int64
		body   string
		want   string
		err    string
	}{
		{"as announced", 2, 10, "{}", "{}", ""},
		{"not announced", -1, 10, "{}", "{}", ""},
		{"no limit to speak of", -1, math.MaxInt64, "{}", "{}", ""},
		{"far more than comes", 90_000_000_000_000, math.MaxInt64, "{}", "", "unexpected EOF"},
		{"a little more than comes", 3, 10, "{}", "", "unexpected EOF"},
		{"more than the limit", -1, 1, "{}", "", "exceeded max body size"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(strings.NewReader(tt.body)))
			r.ContentLength = tt.length
			body, err := ReadBody(r, tt.limit)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, string(body))
		})
	}
}
