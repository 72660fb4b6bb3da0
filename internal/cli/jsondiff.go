package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// diffJSON lists where two JSON values differ, by path; none where they say the same.
func diffJSON(path string, want, got json.RawMessage) []string {
	w, errWant := decodeNumbers(want)
	g, errGot := decodeNumbers(got)
	if errWant != nil || errGot != nil {
		return []string{fmt.Sprintf("%s: want %s, got %s", path, shown(want), shown(got))}
	}
	return diffValues(path, w, g)
}

// decodeNumbers keeps numbers as they are written, so that large integers are not rounded into equality.
func decodeNumbers(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

func diffValues(path string, want, got any) []string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			break
		}
		return diffObjects(path, w, g)
	case []any:
		g, ok := got.([]any)
		if !ok {
			break
		}
		var out []string
		for i := range max(len(w), len(g)) {
			at := fmt.Sprintf("%s[%d]", path, i)
			switch {
			case i >= len(g):
				out = append(out, fmt.Sprintf("%s: missing, want %s", at, compact(w[i])))
			case i >= len(w):
				out = append(out, fmt.Sprintf("%s: unexpected %s", at, compact(g[i])))
			default:
				out = append(out, diffValues(at, w[i], g[i])...)
			}
		}
		return out
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: want %s, got %s", path, compact(want), compact(got))}
}

func diffObjects(path string, want, got map[string]any) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		at := path + "." + key
		if g, ok := got[key]; ok {
			out = append(out, diffValues(at, want[key], g)...)
		} else {
			out = append(out, fmt.Sprintf("%s: missing, want %s", at, compact(want[key])))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			out = append(out, fmt.Sprintf("%s.%s: unexpected %s", path, key, compact(got[key])))
		}
	}
	return out
}

func isInteger(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

// sameNumber takes 1.0 and 1 for the same.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if isInteger(a) && isInteger(b) { // two integers that differ as written differ, however large
		return false
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil { // it was just decoded
		return fmt.Sprint(v)
	}
	return shown(text)
}
