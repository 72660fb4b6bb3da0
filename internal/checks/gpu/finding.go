package gpu

import (
	"fmt"
	"slices"
	"strings"

	"runpodctl-worker/internal/checks"
)

// finding is one thing that speaks against a GPU, or that somebody should look at.
type finding struct {
	status checks.Status
	unit   string // "GPU 2"; empty: it concerns no single one
	text   string
	remedy string
	taken  bool   // the GPU is full or in use by somebody else, which a loaded model explains
	kind   string // of the failure in the log line; empty: RuntimeError
}

func (f finding) String() string {
	if f.unit == "" {
		return f.text
	}
	return f.unit + ": " + f.text
}

// ease gives what a loaded model explains another status.
func ease(found []finding, to checks.Status) []finding {
	eased := slices.Clone(found)
	for i := range eased {
		if eased[i].taken {
			eased[i].status = to
		}
	}
	return eased
}

// conclude makes the result of a check: good as it is where nothing was found, else the worst of what was found, first
// things first, in at most so many messages.
func conclude(good checks.Result, found []finding, most int) checks.Result {
	if len(found) == 0 {
		return good
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b finding) int { return int(b.status) - int(a.status) })
	res := checks.Result{Status: found[0].status, Kind: found[0].kind, Facts: good.Facts, Threshold: good.Threshold}
	res.Summary = strings.Join(messages(found, most), "; ")
	var remedies []string
	for _, f := range found {
		if f.remedy != "" && f.status == res.Status && !slices.Contains(remedies, f.remedy) {
			remedies = append(remedies, f.remedy)
		}
	}
	res.Remedy = strings.Join(remedies, " ")
	return res
}

// messages are the findings as text. Under 1 means that one is shown all the same: a failure without a word helps nobody.
func messages(found []finding, most int) []string {
	most = max(most, 1)
	var list []string
	for i, f := range found {
		if i == most {
			return append(list, fmt.Sprintf("and %d more", len(found)-most))
		}
		list = append(list, f.String())
	}
	return list
}

// worst is the worst status of the findings, Pass where there are none.
func worst(found []finding) checks.Status {
	status := checks.Pass
	for _, f := range found {
		status = max(status, f.status)
	}
	return status
}
