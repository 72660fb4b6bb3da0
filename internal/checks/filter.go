package checks

import (
	"fmt"
	"slices"
	"strings"
)

// Filter picks checks by their ids.
type Filter struct {
	Only []string // not empty: others are left out of the plan
	Skip []string // these stay in the plan, and are not run
}

// Apply filters a plan. An id that the plan does not have is an error.
func (f Filter) Apply(steps []Step) ([]Step, error) {
	for _, id := range slices.Concat(f.Only, f.Skip) {
		if !slices.ContainsFunc(steps, func(s Step) bool { return s.ID == id }) {
			return nil, fmt.Errorf("no check %q among those that would run: %s", id, idsOf(steps))
		}
	}
	var picked []Step
	for _, s := range steps {
		if len(f.Only) == 0 || slices.Contains(f.Only, s.ID) {
			picked = append(picked, s)
		}
	}
	return exclude(picked, func(c Check) string {
		if slices.Contains(f.Skip, c.ID) {
			return "left out by --skip"
		}
		return ""
	}), nil
}

// exclude marks steps for which there is a reason, but keeps a reason that is there already.
func exclude(steps []Step, reason func(Check) string) []Step {
	marked := slices.Clone(steps)
	for i := range marked {
		if marked[i].Exclude == "" {
			marked[i].Exclude = reason(marked[i].Check)
		}
	}
	return marked
}

func idsOf(steps []Step) string {
	var ids []string
	for _, s := range steps {
		if !slices.Contains(ids, s.ID) {
			ids = append(ids, s.ID)
		}
	}
	return strings.Join(ids, ", ")
}
