package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// samples are repeated measurements of one thing.
type samples []float64

func (s samples) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	if len(sorted) == 0 {
		return 0
	}
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// text is "median (min–max)".
func (s samples) text() string {
	if len(s) == 0 {
		return "–"
	}
	if len(s) == 1 {
		return number(s[0])
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.median()), number(slices.Min(s)), number(slices.Max(s)))
}

func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 0.1:
		return fmt.Sprintf("%.2f", f)
	default:
		return fmt.Sprintf("%.3f", f)
	}
}

// bound is the limit that a value is held to.
type bound struct {
	atLeast bool
	value   float64
}

func atLeast(v float64) bound { return bound{true, v} }
func atMost(v float64) bound  { return bound{false, v} }

func (b bound) holds(v float64) bool {
	if b.atLeast {
		return v >= b.value
	}
	return v <= b.value
}

func (b bound) text() string {
	sign := "≤ "
	if b.atLeast {
		sign = "≥ "
	}
	return sign + number(b.value)
}

// comparison is one line of the table.
type comparison struct {
	what, unit   string
	ours, theirs samples
	rival        string // whom theirs belongs to
	bound        bound  // on the ratio, or
	absolute     bool   // on our own figure
}

// ratios are ours over theirs, pair by pair where both were measured in turns.
func (c comparison) ratios() samples {
	if len(c.theirs) == 0 {
		return nil
	}
	if len(c.ours) != len(c.theirs) {
		return samples{c.ours.median() / c.theirs.median()}
	}
	ratios := make(samples, len(c.ours))
	for i := range c.ours {
		ratios[i] = c.ours[i] / c.theirs[i]
	}
	return ratios
}

func (c comparison) write(w io.Writer) {
	judged := c.ratios()
	if c.absolute {
		judged = c.ours
	}
	verdict := "**no**"
	if c.bound.holds(judged.median()) {
		verdict = "yes"
	}
	held := "ratio " + c.bound.text()
	if c.absolute {
		held = c.bound.text() + " " + c.unit
	}
	cells := []string{c.what, c.unit, c.ours.text(), c.theirs.text(), c.rival, c.ratios().text(), held, verdict}
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

func writeHead(w io.Writer) {
	fmt.Fprintln(w, "| what | unit | ours | beside it | which is | ratio | bound | holds |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- |")
}
