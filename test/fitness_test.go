package test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/worker/apidouble"
)

// runChecked starts a worker that does check its machine.
func runChecked(t *testing.T, platform *apidouble.API, env ...string) (p *process, dir string) {
	t.Helper()
	dir = t.TempDir()
	env = append(append(environment(platform, "w1"), roomy...), env...)
	return start(t, command{
		args: []string{binary(t), "run", "--python", python(t), "--handler", handler(t, "unfit.py")}, env: env, dir: dir,
	}), dir
}

// FG-01, FG-19: a worker whose check fails takes no job, says so once, and is gone with all that it started.
func TestFG01UnfitWorkerEnds(t *testing.T) {
	t.Parallel()
	platform := apidouble.New(t)
	p, dir := runChecked(t, platform, "UNFIT="+strings.Repeat("ü", 1000))
	require.Equal(t, 1, p.waitFor(t, patience), p.stderr)
	require.Empty(t, platform.Calls(apidouble.Take))
	var told []apidouble.Call
	for _, ping := range platform.Calls(apidouble.Ping) {
		if ping.Query.Get("status") == "unhealthy" {
			told = append(told, ping)
		}
	}
	require.Len(t, told, 1)
	require.Equal(t, "model_is_there", told[0].Query.Get("check"))
	reason := told[0].Query.Get("reason")
	require.True(t, utf8.ValidString(reason))
	require.LessOrEqual(t, utf8.RuneCountInString(reason), 256)
	require.Contains(t, reason, "üüü")
	text, err := os.ReadFile(filepath.Join(dir, "child"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	eventually(t, func() bool { return !proc.Alive(pid) }, "the child is gone")
}

// FG-02: the early checks come before the program, and once: who runs below a worker that passed them does not repeat
// them.
func TestFG02EarlyChecks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env     []string
		unfit   bool
		started string
	}{
		"they fail":                     {[]string{"RUNPOD_MIN_MEMORY_GB=99999"}, true, ""},
		"they pass":                     {nil, false, "1\n"},
		"they passed above this worker": {[]string{"RUNPOD_MIN_MEMORY_GB=99999", "RUNPOD_EARLY_FITNESS_CHECKS_DONE=1"}, false, "1\n"},
		"they wait for the program":     {[]string{"RUNPOD_MIN_MEMORY_GB=99999", "RUNPOD_DEFER_FITNESS_CHECKS=1"}, true, "no\n"},
		"none at all":                   {[]string{"RUNPOD_MIN_MEMORY_GB=99999", "RUNPOD_SKIP_FITNESS_CHECKS=1"}, false, "no\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			platform := apidouble.New(t)
			p, dir := runChecked(t, platform, row.env...)
			if row.unfit {
				require.Equal(t, 1, p.waitFor(t, patience), p.stderr)
				require.Empty(t, platform.Calls(apidouble.Take))
				require.Contains(t, p.stdout.String()+p.stderr.String(), "Fitness check failed: _memory_check | RuntimeError: Insufficient memory")
			} else {
				eventually(t, func() bool { return len(platform.Calls(apidouble.Take)) > 0 || !p.alive() }, "it takes jobs")
				require.True(t, p.alive(), p.stderr)
			}
			text, _ := os.ReadFile(filepath.Join(dir, "started")) // none where it never was
			require.Equal(t, row.started, string(text))
		})
	}
}
