package checks_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestRunner_WhateverACheckDoes(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(ctx context.Context) checks.Result
		want string
		kind string
	}{
		{
			"passes",
			func(context.Context) checks.Result { return checks.Result{Summary: "good"} },
			"early/it pass: good", "",
		},
		{
			"panics",
			func(context.Context) checks.Result { panic("ouch") },
			"early/it error: the check itself broke: ouch", "",
		},
		{
			"ends its goroutine",
			func(context.Context) checks.Result { runtime.Goexit(); return checks.Result{} },
			"early/it error: the check itself broke: it ended without a result", "",
		},
		{
			"hangs, but obeys",
			func(ctx context.Context) checks.Result {
				<-ctx.Done()
				return checks.Result{Status: checks.Fail, Summary: "step 2 hangs"}
			},
			"early/it fail: step 2 hangs", "",
		},
		{
			"hangs, and comes back too late",
			func(context.Context) checks.Result { time.Sleep(time.Minute); return checks.Result{} },
			"early/it fail: no answer within 7s", "TimeoutError",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := checks.Check{ID: "it", Phase: checks.Early, Limit: 7 * time.Second, Run: tt.run}
				report := checks.NewRunner(checks.Options{}).Run(t.Context(), plan(c, check("next", checks.Pass)), nil)
				require.Equal(t, []string{tt.want, "early/next pass: pass"}, rows(report))
				require.Equal(t, tt.kind, report.Rows[0].Result.Kind)
				if report.Rows[0].Result.Status == checks.Error {
					require.NotEmpty(t, report.Rows[0].Result.Remedy)
				}
				time.Sleep(time.Minute) // who hung comes back
			})
		})
	}
}

func TestRunner_Limits(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options checks.Options
		limit   time.Duration // of the check
		want    time.Duration
	}{
		{"nobody says anything", checks.Options{}, 0, 30 * time.Second},
		{"the check's own", checks.Options{}, time.Minute, time.Minute},
		{"the cap is shorter", checks.Options{Cap: 2 * time.Second}, time.Minute, 2 * time.Second},
		{"the cap is longer", checks.Options{Cap: time.Hour}, time.Second, time.Second},
		{"all together", checks.Options{Total: 3 * time.Second}, time.Minute, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := checks.Check{ID: "it", Phase: checks.Early, Limit: tt.limit, Run: func(ctx context.Context) checks.Result {
					<-ctx.Done()
					return checks.Result{Status: checks.Fail, Summary: context.Cause(ctx).Error()}
				}}
				report := checks.NewRunner(tt.options).Run(t.Context(), plan(c), nil)
				require.Equal(t, tt.want, report.Rows[0].Took)
				require.Equal(t, tt.want, report.Took)
				require.Len(t, report.Fatal(), 1)
			})
		})
	}
}

func TestRunner_TimeForAllTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := with(check("slow", checks.Pass), func(c *checks.Check) {
			c.Run = func(context.Context) checks.Result { time.Sleep(time.Minute); return checks.Result{} }
		})
		report := checks.NewRunner(checks.Options{Total: 5 * time.Second}).
			Run(t.Context(), plan(check("quick", checks.Pass), slow, check("late", checks.Pass)), nil)
		require.Equal(t, []string{
			"early/quick pass: pass",
			"early/slow fail: all checks together may take 5s",
			"early/late skip: not run: all checks together may take 5s",
		}, rows(report))
		time.Sleep(time.Minute) // slow comes back
	})
}

func TestRunner_Interrupted(t *testing.T) {
	stop := errors.New("stopped by SIGTERM")
	for _, tt := range []struct {
		name   string
		cause  error
		after  func(context.Context) checks.Result // what the running check does then
		result string
	}{
		{"it obeys", nil, func(context.Context) checks.Result {
			return checks.Result{Status: checks.Fail, Summary: "context canceled"}
		}, "interrupted"},
		{"it does not", nil, func(context.Context) checks.Result {
			time.Sleep(time.Hour)
			return checks.Result{}
		}, "interrupted"},
		{"for a reason", stop, func(context.Context) checks.Result {
			return checks.Result{Status: checks.Error}
		}, stop.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				running := with(check("running", checks.Pass), func(c *checks.Check) {
					c.Run = func(ctx context.Context) checks.Result { <-ctx.Done(); return tt.after(ctx) }
				})
				time.AfterFunc(2*time.Second, func() { cancel(tt.cause) })
				report := checks.NewRunner(checks.Options{}).Run(ctx, plan(check("done", checks.Pass), running, check("next", checks.Pass)), nil)
				require.Equal(t, []string{
					"early/done pass: pass",
					"early/running skip: " + tt.result,
					"early/next skip: not run: " + tt.result,
				}, rows(report))
				require.Empty(t, report.Fatal())
				require.Less(t, report.Took, 3*time.Second)
				time.Sleep(time.Hour) // who did not obey comes back
			})
		})
	}
	t.Run("what had passed has passed", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := with(check("it", checks.Pass), func(c *checks.Check) {
			c.Run = func(context.Context) checks.Result { cancel(); return checks.Result{Summary: "good"} }
		})
		require.Equal(t, []string{"early/it pass: good"}, rows(checks.NewRunner(checks.Options{}).Run(ctx, plan(c), nil)))
	})
}

func TestRunner_LeavesBehindWhatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var started atomic.Int32
		release := make(chan struct{})
		hangs := with(check("disk", checks.Pass), func(c *checks.Check) {
			c.Recheck, c.Lane, c.Limit = true, "dead", time.Second
			c.Run = func(context.Context) checks.Result {
				started.Add(1)
				<-release
				return checks.Result{Summary: "at last"}
			}
		})
		beside := with(check("beside", checks.Pass), func(c *checks.Check) { c.Lane = "dead" })
		steps := plan(hangs, beside, check("other", checks.Pass))
		runner := checks.NewRunner(checks.Options{})

		hanging := []string{
			"early/disk fail: no answer within 1s",
			"early/beside skip: not run: The disk still hangs, and the two must not run side by side",
			"early/other pass: pass",
			"start/disk fail: the run before this one still hangs",
		}
		require.Equal(t, hanging, rows(runner.Run(t.Context(), steps, nil)))
		hanging[0] = "early/disk fail: the run before this one still hangs"
		require.Equal(t, hanging, rows(runner.Run(t.Context(), steps, nil)))
		require.EqualValues(t, 1, started.Load(), "one goroutine waits, however often it is asked")

		close(release)
		synctest.Wait()
		require.Equal(t, []string{
			"early/disk pass: at last", "early/beside pass: pass", "early/other pass: pass", "start/disk pass: at last",
		}, rows(runner.Run(t.Context(), steps, nil)))
	})
}

func TestRunner_SideBySide(t *testing.T) {
	for _, tt := range []struct {
		name       string
		sideBySide int
		lanes      []string // of the checks, each of which takes a second
		want       time.Duration
		most       int32
	}{
		{"one after another", 0, []string{"", "", ""}, 3 * time.Second, 1},
		{"two at once", 2, []string{"", "", "", ""}, 2 * time.Second, 2},
		{"all at once", 9, []string{"", "", "", ""}, time.Second, 4},
		{"one lane", 9, []string{"gpu", "gpu", "gpu"}, 3 * time.Second, 1},
		{"two lanes", 9, []string{"gpu", "gpu", "yours", "yours"}, 2 * time.Second, 2},
		{"a lane and others", 9, []string{"gpu", "gpu", "", ""}, 2 * time.Second, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running, most atomic.Int32
				inLane := map[string]*atomic.Int32{"": {}, "gpu": {}, "yours": {}}
				var list []checks.Check
				for i, lane := range tt.lanes {
					list = append(list, checks.Check{
						ID: string(rune('a' + i)), Lane: lane, Phase: checks.Early,
						Run: func(context.Context) checks.Result {
							most.Store(max(most.Load(), running.Add(1)))
							if n := inLane[lane].Add(1); lane != "" && n > 1 {
								return checks.Result{Status: checks.Fail, Summary: "two in one lane"}
							}
							time.Sleep(time.Second)
							inLane[lane].Add(-1)
							running.Add(-1)
							return checks.Result{}
						},
					})
				}
				var began []string
				report := checks.NewRunner(checks.Options{SideBySide: tt.sideBySide}).Run(t.Context(), plan(list...), func(e checks.Event) {
					if e, ok := e.(checks.Started); ok {
						began = append(began, e.Step.ID)
					}
				})
				require.Equal(t, len(tt.lanes), report.Count(checks.Pass))
				require.Equal(t, tt.want, report.Took)
				require.Equal(t, tt.most, most.Load())
				require.Equal(t, "a", began[0])
				for i, row := range report.Rows {
					require.Equal(t, list[i].ID, row.Step.ID, "rows are in the order of the plan")
				}
			})
		})
	}
}

func TestRunner_PhasesFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early atomic.Bool
		slow := with(check("slow", checks.Pass), func(c *checks.Check) {
			c.Run = func(context.Context) checks.Result {
				time.Sleep(time.Second)
				early.Store(true)
				return checks.Result{}
			}
		})
		later := with(check("later", checks.Pass), func(c *checks.Check) {
			c.Phase = checks.Start
			c.Run = func(context.Context) checks.Result {
				if !early.Load() {
					return checks.Result{Status: checks.Fail}
				}
				return checks.Result{}
			}
		})
		report := checks.NewRunner(checks.Options{SideBySide: 9}).Run(t.Context(), plan(later, slow), nil)
		require.Equal(t, 2, report.Count(checks.Pass))
	})
}

func TestRunner_StopAtFatal(t *testing.T) {
	vital := func(c *checks.Check) { c.Vital = true }
	untitled := func(c *checks.Check) { c.Title = "" }
	for _, tt := range []struct {
		name string
		stop bool
		list []checks.Check
		last string
	}{
		{"a failure", true, []checks.Check{check("bad", checks.Fail)}, "skip: not run, because The bad failed"},
		{"without a title", true, []checks.Check{with(check("bad", checks.Fail), untitled)}, "skip: not run, because bad failed"},
		{"a failure, and all are wanted", false, []checks.Check{check("bad", checks.Fail)}, "pass: pass"},
		{"the first of two", true, []checks.Check{check("one", checks.Fail), check("two", checks.Fail)}, "skip: not run, because The one failed"},
		{"a warning", true, []checks.Check{check("so-so", checks.Warn)}, "pass: pass"},
		{"could not run", true, []checks.Check{check("odd", checks.Error)}, "pass: pass"},
		{"could not run, but must", true, []checks.Check{with(check("odd", checks.Error), vital)}, "skip: not run, because The odd failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			last := with(check("last", checks.Pass), func(c *checks.Check) { c.Phase = checks.Start })
			report := checks.NewRunner(checks.Options{StopAtFatal: tt.stop}).Run(t.Context(), plan(append(tt.list, last)...), nil)
			got := rows(report)
			require.Equal(t, "start/last "+tt.last, got[len(got)-1])
		})
	}
}

func TestReport(t *testing.T) {
	report := checks.NewRunner(checks.Options{}).Run(t.Context(), plan(
		check("good", checks.Pass), check("odd", checks.Error), check("bad", checks.Fail), check("so-so", checks.Warn),
		with(check("vital", checks.Error), func(c *checks.Check) { c.Vital = true }), check("none", checks.Skip),
	), nil)
	ids := func(rows []checks.Row) (all []string) {
		for _, r := range rows {
			all = append(all, r.Step.ID)
		}
		return all
	}
	require.Equal(t, []string{"bad", "vital"}, ids(report.Fatal()))
	require.Equal(t, []string{"odd", "so-so"}, ids(report.Warnings()))
	require.Equal(t, 2, report.Count(checks.Error))
}
