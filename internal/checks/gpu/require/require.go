// Package require evaluates what an image asks of the driver: the language of NVIDIA_REQUIRE_CUDA and its like, as
// the container toolkit reads it. Spaces mean "or", commas mean "and": "cuda>=12.4 brand=tesla,driver>=535,driver<536".
package require

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Facts is what a machine has. What is empty is not known, and held against nobody.
type Facts struct {
	CUDA   string // newest version that the driver supports: "12.4"
	Driver string // "550.54.15"
	Arch   string // compute capability: "8.9"
	Brand  string // "tesla", "geforce"
}

// Expression is a requirement: alternatives, each of which is a list of terms.
type Expression struct {
	text         string
	alternatives [][]term
}

type term struct{ word, op, value string }

// operators, the longer ones first, so that "<=" is not taken for "<".
var operators = []string{"!=", "<=", ">=", "=", "<", ">"}

var words = []string{"cuda", "driver", "arch", "brand"}

// Parse reads an expression. One that is empty asks for nothing.
func Parse(text string) (Expression, error) {
	e := Expression{text: strings.TrimSpace(text)}
	for alternative := range strings.FieldsSeq(text) {
		var terms []term
		for part := range strings.SplitSeq(alternative, ",") {
			t, err := parseTerm(part)
			if err != nil {
				return Expression{}, err
			}
			terms = append(terms, t)
		}
		e.alternatives = append(e.alternatives, terms)
	}
	return e, nil
}

func parseTerm(text string) (term, error) {
	at := strings.IndexAny(text, "!<>=")
	if at < 0 {
		return term{}, fmt.Errorf("%q has no comparison", text)
	}
	t := term{word: text[:at]}
	for _, op := range operators {
		if value, ok := strings.CutPrefix(text[at:], op); ok {
			t.op, t.value = op, value
			break
		}
	}
	switch {
	case t.op == "":
		return term{}, fmt.Errorf("%q has no comparison that is known", text)
	case !slices.Contains(words, t.word):
		return term{}, fmt.Errorf("%q: want one of %s", text, strings.Join(words, ", "))
	case t.word == "brand" && (t.op != "=" && t.op != "!=" || t.value == ""):
		return term{}, fmt.Errorf("%q: a brand is = or != to a name", text)
	case t.word != "brand" && numbers(t.value) == nil:
		return term{}, fmt.Errorf("%q: want a version", text)
	}
	return t, nil
}

// String is the expression as it was written.
func (e Expression) String() string { return e.text }

// Met tells whether the machine satisfies one of the alternatives.
func (e Expression) Met(f Facts) bool {
	if len(e.alternatives) == 0 {
		return true
	}
	return slices.ContainsFunc(e.alternatives, func(terms []term) bool {
		return !slices.ContainsFunc(terms, func(t term) bool { return !t.met(f) })
	})
}

func (t term) met(f Facts) bool {
	has := map[string]string{"cuda": f.CUDA, "driver": f.Driver, "arch": f.Arch, "brand": f.Brand}[t.word]
	if has == "" {
		return true
	}
	order := strings.Compare(strings.ToLower(has), strings.ToLower(t.value))
	if t.word != "brand" {
		order = slices.Compare(trim(numbers(has)), trim(numbers(t.value)))
	}
	switch t.op {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

// numbers splits "550.54.15"; nil where it is no version.
func numbers(version string) []int {
	var list []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// trim takes trailing zeros away, so that 12 and 12.0 are the same.
func trim(version []int) []int {
	for len(version) > 0 && version[len(version)-1] == 0 {
		version = version[:len(version)-1]
	}
	return version
}
