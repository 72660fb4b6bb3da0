package checks_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// check is one that answers at once.
func check(id string, s checks.Status) checks.Check {
	return checks.Check{
		ID: id, Title: "The " + id, Phase: checks.Early,
		Run: func(context.Context) checks.Result { return checks.Result{Status: s, Summary: s.String()} },
	}
}

// with is a check changed by a function.
func with(c checks.Check, change func(*checks.Check)) checks.Check {
	change(&c)
	return c
}

// plan is the plan of a suite of the checks.
func plan(list ...checks.Check) []checks.Step {
	var suite checks.Suite
	if err := suite.Add(list...); err != nil {
		panic(err)
	}
	return suite.Plan()
}

// rows is a report as "phase/id status: summary".
func rows(r checks.Report) []string {
	var lines []string
	for _, row := range r.Rows {
		lines = append(lines, fmt.Sprintf("%s %s: %s", row.Step.Key(), row.Result.Status, row.Result.Summary))
	}
	return lines
}

// lookup finds variables in a map.
func lookup(env map[string]string) config.Lookup {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}
