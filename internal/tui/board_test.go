package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

// painted is a board on which the events have happened.
func painted(steps []checks.Step, events ...checks.Event) *board {
	s := newScreen(Options{Steps: steps}, func([]checks.Step) {}, func() {})
	s.startAll()
	for _, e := range events {
		s.event(e)
	}
	return s.board
}

func ids(b *board) []string {
	var ids []string
	for _, l := range b.lines {
		ids = append(ids, l.step.ID)
	}
	return ids
}

func finding(step checks.Step, found ...checks.Check) []checks.Event {
	events := []checks.Event{checks.Finished{Row: checks.Row{Step: step, Result: checks.Result{Found: found}}}}
	if len(found) > 0 {
		f := checks.Found{After: step.Key()}
		for _, c := range found {
			f.Steps = append(f.Steps, checks.Step{Check: c, In: step.In})
		}
		events = append(events, f)
	}
	return events
}

func TestBoard_WhatIsFoundFollows(t *testing.T) {
	plan := steps(
		check("first", "First", checks.Start, checks.Result{}),
		check("handler", "Handler", checks.Start, checks.Result{}),
		check("last", "Last", checks.Start, checks.Result{}),
	)
	model := check("user.model", "Model", checks.Start, checks.Result{})
	cache := check("user.cache", "Cache", checks.Start, checks.Result{})
	nested := check("user.nested", "Nested", checks.Start, checks.Result{})
	for name, tt := range map[string]struct {
		events [][]checks.Event
		want   []string
	}{
		"nothing": {nil, []string{"first", "handler", "last"}},
		"in the order of the finding": {
			[][]checks.Event{finding(plan[1], model, cache)},
			[]string{"first", "handler", "user.model", "user.cache", "last"},
		},
		"found again": {
			[][]checks.Event{finding(plan[1], model, cache), finding(plan[1], model, cache)},
			[]string{"first", "handler", "user.model", "user.cache", "last"},
		},
		"one is gone, another new": {
			[][]checks.Event{finding(plan[1], model), finding(plan[1], cache)},
			[]string{"first", "handler", "user.cache", "last"},
		},
		"all are gone, with what they found": {
			[][]checks.Event{
				finding(plan[1], model), finding(checks.Step{Check: model, In: checks.Start}, nested), finding(plan[1]),
			},
			[]string{"first", "handler", "last"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var events []checks.Event
			for _, e := range tt.events {
				events = append(events, e...)
			}
			require.Equal(t, tt.want, ids(painted(plan, events...)))
		})
	}
}

func TestBoard_Report(t *testing.T) {
	plan := steps(
		check("a", "A", checks.Early, checks.Result{}),
		check("b", "B", checks.Early, checks.Result{}),
	)
	old := checks.Row{Step: plan[0], Result: checks.Result{Summary: "old"}}
	renewed := checks.Row{Step: plan[0], Result: checks.Result{Summary: "new"}}
	again := checks.Started{Step: plan[0], At: time.Now()}
	for name, tt := range map[string]struct {
		events []checks.Event
		want   []string
	}{
		"nothing yet":                {nil, []string{"not run yet", "not run yet"}},
		"the newest result counts":   {[]checks.Event{checks.Finished{Row: old}, checks.Finished{Row: renewed}}, []string{"new", "not run yet"}},
		"until there is a newer one": {[]checks.Event{checks.Finished{Row: old}, again}, []string{"old", "not run yet"}},
	} {
		t.Run(name, func(t *testing.T) {
			var summaries []string
			for _, row := range painted(plan, tt.events...).report().Rows {
				summaries = append(summaries, row.Result.Summary)
			}
			require.Equal(t, tt.want, summaries)
		})
	}
}
