package checks_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

func TestSuite_Add(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    checks.Check
		err  string
	}{
		{"good", check("new", checks.Pass), ""},
		{"taken", check("old", checks.Pass), `check id "old" is taken`},
		{"no id", check("", checks.Pass), `check id "": want a word`},
		{"a comma", check("a,b", checks.Pass), `check id "a,b": want a word`},
		{"nothing to run", checks.Check{ID: "x", Phase: checks.Early}, "check x has nothing to run"},
		{"no phase", with(check("x", checks.Pass), func(c *checks.Check) { c.Phase = 0 }), "check x belongs to no phase"},
		{"twice in one list", check("beside", checks.Pass), `check id "beside" is taken`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var suite checks.Suite
			require.NoError(t, suite.Add(check("old", checks.Pass)))
			err := suite.Add(check("beside", checks.Pass), tt.c)
			if tt.err == "" {
				require.NoError(t, err)
				require.Len(t, suite.Plan(), 3)
				return
			}
			require.ErrorContains(t, err, tt.err)
			require.Len(t, suite.Plan(), 1, "all of them or none")
		})
	}
}

func TestSuite_Plan(t *testing.T) {
	var suite checks.Suite
	require.NoError(t, suite.Add(
		with(check("network", checks.Pass), func(c *checks.Check) { c.Phase = checks.Start }),
		check("memory", checks.Pass),
		with(check("disk", checks.Pass), func(c *checks.Check) { c.Recheck = true }),
	))
	for _, tt := range []struct {
		name   string
		phases []checks.Phase
		want   []string
	}{
		{"both", nil, []string{"early/memory", "early/disk", "start/disk", "start/network"}},
		{"early", []checks.Phase{checks.Early}, []string{"early/memory", "early/disk"}},
		{"start", []checks.Phase{checks.Start}, []string{"start/disk", "start/network"}},
	} {
		t.Run(tt.name, func(t *testing.T) { require.Equal(t, tt.want, keys(suite.Plan(tt.phases...))) })
	}
}

// keys are the keys of the steps, with the reason where one is excluded.
func keys(steps []checks.Step) []string {
	var all []string
	for _, s := range steps {
		key := s.Key()
		if s.Exclude != "" {
			key += " (" + s.Exclude + ")"
		}
		all = append(all, key)
	}
	return all
}

// house is a suite with a check of every kind that switches tell apart.
func house() []checks.Check {
	builtin := func(c *checks.Check) { c.Builtin = true }
	return []checks.Check{
		with(check("memory", checks.Pass), builtin),
		with(check("gpu_memory", checks.Pass), func(c *checks.Check) { c.Builtin, c.Switch = true, config.SkipGPU }),
		check("yours", checks.Pass),
	}
}

func TestSwitches_Apply(t *testing.T) {
	for _, tt := range []struct {
		name     string
		switches checks.Switches
		want     []string
	}{
		{"none", checks.Switches{}, []string{"early/memory", "early/gpu_memory", "early/yours"}},
		{"later is not never", checks.Switches{Defer: true}, []string{"early/memory", "early/gpu_memory", "early/yours"}},
		{"system", checks.Switches{SkipSystem: true}, []string{
			"early/memory (RUNPOD_SKIP_AUTO_SYSTEM_CHECKS is set)", "early/gpu_memory", "early/yours",
		}},
		{"GPU", checks.Switches{SkipGPU: true}, []string{
			"early/memory", "early/gpu_memory (RUNPOD_SKIP_GPU_CHECK is set)", "early/yours",
		}},
		{"both", checks.Switches{SkipSystem: true, SkipGPU: true}, []string{
			"early/memory (RUNPOD_SKIP_AUTO_SYSTEM_CHECKS is set)", "early/gpu_memory (RUNPOD_SKIP_GPU_CHECK is set)", "early/yours",
		}},
		{"all", checks.Switches{SkipAll: true, SkipGPU: true}, []string{
			"early/memory (RUNPOD_SKIP_FITNESS_CHECKS is set)", "early/gpu_memory (RUNPOD_SKIP_FITNESS_CHECKS is set)",
			"early/yours (RUNPOD_SKIP_FITNESS_CHECKS is set)",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := plan(house()...)
			require.Equal(t, tt.want, keys(tt.switches.Apply(steps)))
			require.Empty(t, steps[0].Exclude, "the plan that was given is as it was")
		})
	}
}

func TestFilter(t *testing.T) {
	for _, tt := range []struct {
		name   string
		filter checks.Filter
		want   []string
		err    string
	}{
		{"nothing asked", checks.Filter{}, []string{"early/memory", "early/gpu_memory (off)", "early/yours"}, ""},
		{"only", checks.Filter{Only: []string{"yours", "memory"}}, []string{"early/memory", "early/yours"}, ""},
		{"skip", checks.Filter{Skip: []string{"memory"}}, []string{"early/memory (left out by --skip)", "early/gpu_memory (off)", "early/yours"}, ""},
		{"skip what is off", checks.Filter{Skip: []string{"gpu_memory"}}, []string{"early/memory", "early/gpu_memory (off)", "early/yours"}, ""},
		{"both", checks.Filter{Only: []string{"memory"}, Skip: []string{"memory"}}, []string{"early/memory (left out by --skip)"}, ""},
		{
			"unknown",
			checks.Filter{Only: []string{"memory", "memroy"}},
			nil,
			`no check "memroy" among those that would run: memory, gpu_memory, yours`,
		},
		{"unknown to skip", checks.Filter{Skip: []string{""}}, nil, `no check ""`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := plan(house()...)
			steps[1].Exclude = "off"
			got, err := tt.filter.Apply(steps)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, keys(got))
		})
	}
	t.Run("an id stands for both phases", func(t *testing.T) {
		disk := with(check("disk", checks.Pass), func(c *checks.Check) { c.Recheck = true })
		got, err := checks.Filter{Only: []string{"disk"}}.Apply(plan(disk, check("other", checks.Pass)))
		require.NoError(t, err)
		require.Equal(t, []string{"early/disk", "start/disk"}, keys(got))
		_, err = checks.Filter{Only: []string{"none"}}.Apply(plan(disk))
		require.ErrorContains(t, err, "would run: disk")
		require.NotContains(t, err.Error(), "disk, disk")
	})
}

func TestSkipped(t *testing.T) {
	c := with(check("it", checks.Pass), func(c *checks.Check) {
		c.Run = func(context.Context) checks.Result { return checks.Skipped("no GPU of %d", 2) }
	})
	require.Equal(t, []string{"early/it skip: no GPU of 2"}, rows(checks.NewRunner(checks.Options{}).Run(t.Context(), plan(c), nil)))
}
