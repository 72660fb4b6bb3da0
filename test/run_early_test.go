package test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// checked turns the fitness checks on, with thresholds that every machine meets.
var checked = []string{"RUNPOD_SKIP_FITNESS_CHECKS=", "RUNPOD_MIN_MEMORY_GB=0.01", "RUNPOD_MIN_DISK_PERCENT=0.01"}

func with(env []string, more ...string) []string { return append(append([]string{}, env...), more...) }

// insatiable is a threshold that no machine meets.
const insatiable = "RUNPOD_MIN_MEMORY_GB=99999"

// unhealthy waits for the end of an unfit worker and returns its one last word to the platform.
func (w *worker) unhealthy(t *testing.T) apidouble.Call {
	t.Helper()
	require.Equal(t, 1, w.wait(t), w.stderr)
	// The official package says it itself.
	require.Equal(t, 1, strings.Count(w.stdout.String()+w.stderr.String(), "Worker is unhealthy, exiting."), w.stderr)
	require.Empty(t, w.Calls(apidouble.Take))
	pings := w.Calls(apidouble.Ping)
	require.Len(t, pings, 1)
	require.Equal(t, "unhealthy", pings[0].Query.Get("status"))
	require.NotEmpty(t, pings[0].Query.Get("runpod_version"))
	require.Equal(t, platformKey, pings[0].Header.Get("Authorization"))
	return pings[0]
}

// FG-02, FG-19: a bad machine is left before the first line of the handler runs, with one word to the platform.
func TestFG02UnfitBeforeTheHandlerRuns(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	w := runCommand(t, apidouble.New(t), with(checked, insatiable), "--", "touch", started)
	ping := w.unhealthy(t)
	require.Equal(t, "_memory_check", ping.Query.Get("check"))
	require.Regexp(t, `^Insufficient memory: [0-9.]+GB available, 99999\.0GB required$`, ping.Query.Get("reason"))
	require.Regexp(t, `Running [0-9] fitness check\(s\)\.\.\.`, w.stderr)
	require.Contains(t, w.stderr.String(), "Fitness check failed: _memory_check | RuntimeError: "+ping.Query.Get("reason"))
	require.NoFileExists(t, started)
}

// FG-02: a variable that makes no sense is loud, and as fatal.
func TestFG02MalformedThreshold(t *testing.T) {
	t.Parallel()
	started := filepath.Join(t.TempDir(), "started")
	w := runCommand(t, apidouble.New(t), with(checked, "RUNPOD_MIN_MEMORY_GB=plenty"), "--", "touch", started)
	require.Contains(t, w.unhealthy(t).Query.Get("reason"), "RUNPOD_MIN_MEMORY_GB")
	require.NoFileExists(t, started)
}

// FG-19: a platform that does not answer does not keep an unfit worker.
func TestFG19PlatformThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	d.On(apidouble.Ping, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Delay: 2 * patience} })
	w := runCommand(t, d, with(checked, insatiable), "--", "true")
	ping := w.unhealthy(t)
	require.Less(t, w.end.Sub(ping.At), soon)
}

// FG-19: without a key, or a URL, nobody is called.
func TestFG19NobodyToTell(t *testing.T) {
	t.Parallel()
	for name, unset := range map[string]string{"no key": "RUNPOD_AI_API_KEY=", "no URL": "RUNPOD_WEBHOOK_PING="} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runCommand(t, apidouble.New(t), with(checked, insatiable, unset), "--", "true")
			require.Equal(t, 1, w.wait(t), w.stderr)
			require.Contains(t, w.stderr.String(), "Worker is unhealthy, exiting.")
			require.Empty(t, w.Calls(apidouble.Ping))
		})
	}
}

// FG-02: what the switches mean, seen from the handler: whether memory is looked at before and after it loads, and what it and
// its children are told.
func TestFG02WhenTheEarlyChecksRun(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env           []string
		before, after bool
		marker        string
	}{
		"a worker":               {nil, true, false, `"1"`},
		"a test run":             {[]string{"RUNPOD_TEST=true"}, false, true, `null`},
		"no endpoint":            {[]string{"RUNPOD_ENDPOINT_ID="}, false, true, `null`},
		"deferred":               {[]string{"RUNPOD_DEFER_FITNESS_CHECKS=Yes"}, false, true, `null`},
		"all off":                {[]string{"RUNPOD_SKIP_FITNESS_CHECKS=on", insatiable}, false, false, `null`},
		"none of the machine":    {[]string{"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS=1", insatiable}, false, false, `"1"`},
		"passed above already":   {[]string{"RUNPOD_EARLY_FITNESS_CHECKS_DONE=1"}, false, false, `"1"`},
		"a threshold set late":   {[]string{"LATE=RUNPOD_MIN_MEMORY_GB=0.02"}, true, true, `"1"`},
		"checks turned off late": {[]string{"LATE=RUNPOD_SKIP_FITNESS_CHECKS=true " + insatiable}, true, false, `"1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, doors["shim"], with(checked, row.env...), "marker.py")
			w.Offer(apidouble.Job("j1"))
			require.JSONEq(t, `{"own":`+row.marker+`,"child":`+row.marker+`}`, string(w.result(t, "j1").Output))

			early, late, _ := strings.Cut(w.stderr.String(), "handler loads")
			require.Equal(t, row.before, strings.Contains(early, "Memory check passed"), early)
			require.Equal(t, row.after, strings.Contains(late, "Memory check passed"), late)
		})
	}
}

// FG-02: the children of a program with the official package are told as well, however they come to be.
func TestFG02ChildrenOfTheOfficialPackage(t *testing.T) {
	t.Parallel()
	w := runThrough(t, doors["gateway"], checked, "marker.py")
	w.Offer(apidouble.Job("j1"))
	require.JSONEq(t, `{"own":"1","child":"1"}`, string(w.result(t, "j1").Output))
	require.Equal(t, 1, strings.Count(w.stderr.String(), "Memory check passed"), w.stderr)
}

// FG-02: a threshold that the handler raises while it loads counts: the worker ends, and the handler with it.
func TestFG02ThresholdRaisedLate(t *testing.T) {
	t.Parallel()
	child := filepath.Join(t.TempDir(), "child")
	w := runThrough(t, doors["shim"], with(checked, "CHECK=good", "CHILD="+child, "LATE="+insatiable), "check.py")
	require.Equal(t, "_memory_check", w.unhealthy(t).Query.Get("check"))
	requireGone(t, pidsIn(t, child))
}

// An endpoint whose API cannot be reached is found before the first job.
func TestRunChecksTheNetwork(t *testing.T) {
	t.Parallel()
	nowhere := "RUNPOD_WEBHOOK_GET_JOB=http://" + freeAddress(t) + "/v2/ep/job-take/$ID?"
	w := runThrough(t, doors["shim"], with(checked, nowhere, "RUNPOD_NETWORK_CHECK_TIMEOUT=1"), "sync.py")
	require.Equal(t, "_network_check", w.unhealthy(t).Query.Get("check"))
}
