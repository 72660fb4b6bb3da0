package checks_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

// told is a list of events as words.
func told(events *[]string) func(checks.Event) {
	return func(e checks.Event) {
		switch e := e.(type) {
		case checks.Started:
			*events = append(*events, "started "+e.Step.ID)
		case checks.Found:
			for _, s := range e.Steps {
				*events = append(*events, "found "+s.ID+" after "+e.After)
			}
		case checks.Finished:
			*events = append(*events, "finished "+e.Row.Step.ID)
		case checks.Ended:
			*events = append(*events, "ended")
		}
	}
}

func TestEvents_FoundChecksFollowTheirFinder(t *testing.T) {
	finder := with(check("handler", checks.Pass), func(c *checks.Check) {
		c.Run = func(context.Context) checks.Result {
			return checks.Result{Found: []checks.Check{check("check_gpu", checks.Pass), check("check_gpu", checks.Warn)}}
		}
	})
	var events []string
	report := checks.NewRunner(checks.Options{}).Run(t.Context(), plan(finder, check("last", checks.Pass)), told(&events))
	require.Equal(t, []string{
		"started handler", "finished handler", "found check_gpu after early/handler", "found check_gpu-2 after early/handler",
		"started check_gpu", "finished check_gpu", "started check_gpu-2", "finished check_gpu-2",
		"started last", "finished last", "ended",
	}, events)
	require.Equal(t, []string{
		"early/handler pass: ", "early/check_gpu pass: pass", "early/check_gpu-2 warn: warn", "early/last pass: pass",
	}, rows(report))
}

func TestEvents_ExcludedStepsFinishOnly(t *testing.T) {
	steps := plan(check("one", checks.Fail), check("two", checks.Pass))
	steps[0].Exclude = "not today"
	var events []string
	report := checks.NewRunner(checks.Options{}).Run(t.Context(), steps, told(&events))
	require.Equal(t, []string{"finished one", "started two", "finished two", "ended"}, events)
	require.Equal(t, []string{"early/one skip: not today", "early/two pass: pass"}, rows(report))
}

func TestEvents_AnEmptyPlanEnds(t *testing.T) {
	var events []string
	require.Empty(t, checks.NewRunner(checks.Options{}).Run(t.Context(), nil, told(&events)).Rows)
	require.Equal(t, []string{"ended"}, events)
}

func TestEvents_OneAtATimeInASaneOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list []checks.Check
		for i := range 20 {
			list = append(list, with(check(string(rune('a'+i)), checks.Pass), func(c *checks.Check) {
				c.Run = func(context.Context) checks.Result {
					time.Sleep(time.Duration(i%5) * time.Second)
					return checks.Result{}
				}
			}))
		}
		state := map[string]string{} // written without a lock: events come one at a time
		ended := 0
		checks.NewRunner(checks.Options{SideBySide: 4}).Run(t.Context(), plan(list...), func(e checks.Event) {
			require.Zero(t, ended, "nothing follows the end")
			switch e := e.(type) {
			case checks.Started:
				require.Empty(t, state[e.Step.ID])
				require.Equal(t, time.Now(), e.At)
				state[e.Step.ID] = "started"
			case checks.Finished:
				require.Equal(t, "started", state[e.Row.Step.ID])
				state[e.Row.Step.ID] = "finished"
			case checks.Ended:
				ended++
				require.Len(t, e.Report.Rows, len(list))
			}
		})
		require.Equal(t, 1, ended)
		for id, s := range state {
			require.Equal(t, "finished", s, id)
		}
	})
}
