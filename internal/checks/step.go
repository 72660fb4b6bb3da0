package checks

import (
	"fmt"
	"strings"
)

// Step is one row of a plan: a check in the phase in which it runs.
type Step struct {
	Check
	In      Phase
	Exclude string // not empty: it will not run, and why
}

// Key names a step: the same check may run in two phases.
func (s Step) Key() string { return s.In.String() + "/" + s.ID }

// Suite is an ordered list of checks.
type Suite struct{ checks []Check }

// Add appends checks in the given order: all of them, or none where one is unusable.
func (s *Suite) Add(list ...Check) error {
	known := map[string]bool{}
	for _, c := range s.checks {
		known[c.ID] = true
	}
	for _, c := range list {
		switch {
		case c.ID == "" || strings.ContainsAny(c.ID, ", \t\n"):
			return fmt.Errorf("check id %q: want a word without spaces or commas", c.ID)
		case known[c.ID]:
			return fmt.Errorf("check id %q is taken", c.ID)
		case c.Run == nil:
			return fmt.Errorf("check %s has nothing to run", c.ID)
		case c.Phase != Early && c.Phase != Start:
			return fmt.Errorf("check %s belongs to no phase", c.ID)
		}
		known[c.ID] = true
	}
	s.checks = append(s.checks, list...)
	return nil
}

// Plan lists the steps of the phases asked for: each check in its phase, rechecks first at start. No phase means both.
func (s *Suite) Plan(phases ...Phase) []Step {
	if len(phases) == 0 {
		phases = []Phase{Early, Start}
	}
	var steps []Step
	for _, phase := range phases {
		if phase == Start {
			for _, c := range s.checks {
				if c.Recheck {
					steps = append(steps, Step{Check: c, In: Start})
				}
			}
		}
		for _, c := range s.checks {
			if c.Phase == phase {
				steps = append(steps, Step{Check: c, In: phase})
			}
		}
	}
	return steps
}
