package tui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"time"

	"runpodctl-worker/internal/checks"
)

// schema is the version of the JSON document. It rises when a reader of the old form would misread the new one.
const schema = 1

// JSON writes the document for programs. docs/doctor.md describes it.
func JSON(w io.Writer, d Document) error {
	doc := struct {
		Schema  int            `json:"schema"`
		Version string         `json:"version"`
		Host    facts          `json:"host"`
		Started time.Time      `json:"started"`
		MS      float64        `json:"ms"`
		OK      bool           `json:"ok"`
		Counts  map[string]int `json:"counts"`
		Checks  []jsonCheck    `json:"checks"`
	}{
		schema, d.Version, d.Host, d.Report.Began.UTC(), milliseconds(d.Report.Took), d.OK(),
		map[string]int{},
		[]jsonCheck{},
	}
	for _, s := range []checks.Status{checks.Pass, checks.Skip, checks.Warn, checks.Error, checks.Fail} {
		doc.Counts[s.String()] = d.Report.Count(s)
	}
	for _, row := range d.Report.Rows {
		doc.Checks = append(doc.Checks, newJSONCheck(row))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

type jsonCheck struct {
	ID        string            `json:"id"`
	Title     string            `json:"title"`
	Phase     string            `json:"phase"`
	Status    checks.Status     `json:"status"`
	MS        float64           `json:"ms"`
	Summary   string            `json:"summary"`
	Facts     facts             `json:"facts"`
	Threshold *checks.Threshold `json:"threshold,omitempty"`
	Remedy    string            `json:"remedy,omitempty"`
	Output    string            `json:"output,omitempty"`
}

func newJSONCheck(row checks.Row) jsonCheck {
	res := row.Result
	c := jsonCheck{
		row.Step.ID, row.Step.Title, row.Step.In.String(), res.Status, milliseconds(row.Took), res.Summary,
		res.Facts, nil, res.Remedy, res.Output,
	}
	if t := res.Threshold; t != nil {
		c.Threshold = &checks.Threshold{Value: plainValue(t.Value), Text: t.Text, Origin: t.Origin}
	}
	return c
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// facts are an object whose members keep their order. Of two facts with one name the later counts.
type facts []checks.Fact

func (f facts) MarshalJSON() ([]byte, error) {
	var buf bytes.Buffer
	buf.WriteByte('{')
	for i, fact := range f {
		if slices.ContainsFunc(f[i+1:], func(later checks.Fact) bool { return later.Name == fact.Name }) {
			continue
		}
		if buf.Len() > 1 {
			buf.WriteByte(',')
		}
		name, err := marshal(fact.Name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(plainValue(fact.Value))
		if err != nil {
			return nil, fmt.Errorf("fact %s: %w", fact.Name, err)
		}
		buf.Write(name)
		buf.WriteByte(':')
		buf.Write(value)
	}
	buf.WriteByte('}')
	return buf.Bytes(), nil
}

// marshal leaves < > & as they are; an encoder around it would not turn them back.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

// plainValue makes a value one that JSON knows: a number that is none becomes null, and what is neither a number nor
// text, a bool or a list becomes its text.
func plainValue(v any) any {
	if text, ok := v.(fmt.Stringer); ok { // a version, a duration
		return text.String()
	}
	value := reflect.ValueOf(v)
	switch value.Kind() {
	case reflect.Invalid, reflect.Bool, reflect.String:
		return v
	case reflect.Float32, reflect.Float64:
		if f := value.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return v
	case reflect.Slice, reflect.Array:
		list := make([]any, value.Len())
		for i := range list {
			list[i] = plainValue(value.Index(i).Interface())
		}
		return list
	default:
		if value.CanInt() || value.CanUint() {
			return v
		}
		return fmt.Sprint(v)
	}
}
