package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func keysOf(steps []checks.Step) []string {
	var keys []string
	for _, s := range steps {
		keys = append(keys, s.Key())
	}
	return keys
}

func (r *rig) selectKey(key string) { r.selected = key }

func TestRuns_Again(t *testing.T) {
	failed := []string{"early/disk", "early/gpu_memory", "early/gpu_health", "start/user.tokenizer"}
	for name, tt := range map[string]struct {
		selected string
		key      string
		want     []string
	}{
		"the selected one": {"start/network", "r", []string{"start/network"}},
		"what failed":      {"", "f", failed},
		"all":              {"", "a", keysOf(planOf(scene()))},
	} {
		t.Run(name, func(t *testing.T) {
			r := ended(Options{})
			if tt.selected != "" {
				r.selectKey(tt.selected)
			}
			r.press(tt.key)
			require.Len(t, r.began, 2)
			require.Equal(t, tt.want, keysOf(r.began[1]))
			for _, key := range tt.want {
				require.Equal(t, waiting, r.board.find(key).stage)
			}
		})
	}
}

func TestRuns_NeverTwoAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		selected string
		key      string
		next     []string // what runs after the present run
		hint     string
	}{
		"one that runs":      {"early/gpu_health", "r", nil, "GPU health is running"},
		"one that waits":     {"start/network", "r", nil, "Network waits for its turn"},
		"one that has ended": {"early/memory", "r", []string{"early/memory"}, ""},
		"what failed so far": {"early/memory", "f", []string{"early/disk", "early/gpu_memory"}, ""},
		"all":                {"early/memory", "a", nil, "the checks are running"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(Options{Steps: planOf(scene())})
			r.playScene(4)
			r.selectKey(tt.selected)
			r.press(tt.key)
			require.Len(t, r.began, 1)
			require.Equal(t, tt.hint, r.hint)

			rows := scene()
			for _, row := range rows[4:] {
				r.play(checks.Finished{Row: row})
			}
			require.Len(t, r.began, 1, "not before the run has ended")
			r.play(checks.Ended{Report: checks.Report{Began: noon, Rows: rows}})
			if tt.next == nil {
				require.Len(t, r.began, 1)
				return
			}
			require.Len(t, r.began, 2)
			require.Equal(t, tt.next, keysOf(r.began[1]))
			require.Equal(t, noon, r.board.report().Began, "a run of some does not make it a new report")
		})
	}
}

func TestRuns_WishTwice(t *testing.T) {
	r := newRig(Options{Steps: planOf(scene())})
	r.playScene(4)
	r.press("g", "r", "r")
	require.Equal(t, "Memory waits for its turn", r.hint)
	r.play(checks.Ended{})
	require.Equal(t, []string{"early/memory"}, keysOf(r.began[1]))
}

func TestRuns_NothingFailed(t *testing.T) {
	r := newRig(Options{Steps: steps(check("a", "A", checks.Early, checks.Result{}))})
	r.play(checks.Finished{Row: checks.Row{Step: r.options.Steps[0]}}, checks.Ended{})
	r.press("f")
	require.Equal(t, "nothing failed", r.hint)
	require.Len(t, r.began, 1)
}

func TestRuns_FoundOnesComeWithTheirFinder(t *testing.T) {
	plan := steps(check("handler", "Handler", checks.Start, checks.Result{}))
	model := check("user.model", "Model", checks.Start, checks.Result{})
	r := newRig(Options{Steps: plan})
	r.play(finding(plan[0], model)...)
	child := checks.Row{Step: checks.Step{Check: model, In: checks.Start}, Result: checks.Result{Status: checks.Fail}}
	r.play(checks.Finished{Row: child}, checks.Ended{})
	r.board.find("start/handler").last.Result.Status = checks.Warn

	r.press("f")
	require.Equal(t, []string{"start/handler"}, keysOf(r.began[1]), "its finder runs, and brings it along")
	require.Equal(t, waiting, r.board.find("start/user.model").stage)

	r.play(finding(plan[0], model)...)
	r.play(checks.Finished{Row: child}, checks.Ended{})
	r.selectKey("start/user.model")
	r.press("r")
	require.Equal(t, []string{"start/user.model"}, keysOf(r.began[2]))
}

func TestRuns_Watch(t *testing.T) {
	r := ended(Options{Watch: 10 * time.Second})
	require.Contains(t, r.View(), "again in 10 s")
	r.wait(9 * time.Second)
	require.Contains(t, r.View(), "again in 1 s")
	require.Len(t, r.began, 1)
	r.wait(time.Second)
	require.Len(t, r.began, 2)
	require.Equal(t, keysOf(planOf(scene())), keysOf(r.began[1]))
	require.NotContains(t, r.View(), "again in")

	r.play(checks.Ended{})
	r.press("a")
	require.Len(t, r.began, 3, "nobody has to wait for it")
	r.wait(time.Hour)
	require.Len(t, r.began, 3)
}

func TestRuns_NoneBeginsWhileLeaving(t *testing.T) {
	r := newRig(Options{Steps: planOf(scene()), Watch: time.Second})
	r.playScene(4)
	r.press("q", "g", "r", "f", "a")
	require.True(t, quits(r.play(checks.Ended{})))
	r.wait(time.Hour)
	require.Len(t, r.began, 1)
}
