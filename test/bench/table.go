package main

import (
	"cmp"
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

// judged is what the bound of a comparison is on.
type judged int

const (
	byRatio  judged = iota // ours over theirs
	byExcess               // ours less theirs
	byOurs                 // our own figure
	byNobody               // there is no bound: the line is for information
)

// comparison is one line of the table.
type comparison struct {
	what, unit   string
	ours, theirs samples
	rival        string // whom theirs belongs to, if there are any
	bound        bound
	judged       judged
}

// ratios are ours over theirs.
func (c comparison) ratios() samples {
	return c.pairs(func(ours, theirs float64) float64 { return ours / theirs })
}

// excess is ours less theirs.
func (c comparison) excess() samples {
	return c.pairs(func(ours, theirs float64) float64 { return ours - theirs })
}

// pairs compares pair by pair where both were measured in turns.
func (c comparison) pairs(compare func(ours, theirs float64) float64) samples {
	if len(c.theirs) == 0 {
		return nil
	}
	if len(c.ours) != len(c.theirs) {
		return samples{compare(c.ours.median(), c.theirs.median())}
	}
	compared := make(samples, len(c.ours))
	for i := range c.ours {
		compared[i] = compare(c.ours[i], c.theirs[i])
	}
	return compared
}

func (c comparison) write(w io.Writer) {
	held, verdict := c.verdict()
	cells := []string{c.what, c.unit, c.ours.text(), c.theirs.text(), cmp.Or(c.rival, "–"), c.ratios().text(), held, verdict}
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// verdict says what the bound is and whether it holds.
func (c comparison) verdict() (held, verdict string) {
	var value float64
	switch c.judged {
	case byRatio:
		held, value = "ratio "+c.bound.text(), c.ratios().median()
	case byExcess:
		held, value = fmt.Sprintf("%s %s more", c.bound.text(), c.unit), c.excess().median()
	case byOurs:
		held, value = c.bound.text()+" "+c.unit, c.ours.median()
	case byNobody:
		return "–", "–"
	}
	if !c.bound.holds(value) {
		return held, "**no**"
	}
	return held, "yes"
}

func writeHead(w io.Writer) {
	fmt.Fprintln(w, "| what | unit | ours | beside it | which is | ratio | bound | holds |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- |")
}
