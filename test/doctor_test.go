package test

import (
	"encoding/json"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/proc"
)

// doctorReport is what `doctor --json` prints.
type doctorReport struct {
	Schema  int
	Version string
	OK      bool
	Host    map[string]any
	Counts  map[string]int
	Checks  []doctorRow
}

type doctorRow struct {
	ID, Title, Phase, Status, Summary, Remedy, Output string
	MS                                                float64
	Facts                                             map[string]any
	Threshold                                         *struct {
		Value        any
		Text, Origin string
	}
}

// row finds the first row of a check.
func (r doctorReport) row(t *testing.T, id string) doctorRow {
	t.Helper()
	for _, row := range r.Checks {
		if row.ID == id {
			return row
		}
	}
	require.Fail(t, "no such row", id)
	return doctorRow{}
}

// doctor runs `doctor --json` to its end. Nothing of the environment but what is given reaches it.
func doctor(t *testing.T, env []string, args ...string) (code int, report doctorReport) {
	t.Helper()
	p := runToEnd(t, command{args: append([]string{binary(t), "doctor", "--json"}, args...), dir: t.TempDir(), env: env})
	require.Empty(t, p.stderr.String())
	dec := json.NewDecoder(strings.NewReader(p.stdout.String()))
	require.NoError(t, dec.Decode(&report), p.stdout)
	require.False(t, dec.More(), "one document: %s", p.stdout)
	return p.wait(t), report
}

// target is the address of a listener that accepts what the network check sends.
func target(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// roomy keeps the state of the test machine out of what is tested.
var roomy = []string{"RUNPOD_MIN_DISK_PERCENT=0", "RUNPOD_MIN_MEMORY_GB=0.1"}

var gpuRows = []string{"cuda_version", "gpu_health", "gpu_memory", "cuda_init", "gpu_benchmark"}

func TestDoctor_WithoutGPU(t *testing.T) {
	t.Parallel()
	code, report := doctor(t, roomy, "--target", target(t))
	require.Zero(t, code)
	require.Equal(t, 1, report.Schema)
	require.Contains(t, report.Version, testVersion)
	require.True(t, report.OK)
	require.NotEmpty(t, report.Host)
	for _, id := range gpuRows {
		row := report.row(t, id)
		require.Equal(t, "skip", row.Status, id)
		require.Contains(t, row.Summary, "GPU", id)
	}
	for _, id := range []string{"memory", "disk", "network"} {
		row := report.row(t, id)
		require.Equal(t, "pass", row.Status, row)
		require.NotEmpty(t, row.Facts, id)
		require.NotNil(t, row.Threshold, id)
	}
	phases := map[string]int{}
	for _, row := range report.Checks {
		phases[row.Phase]++
	}
	require.Equal(t, 2, countRows(report, "disk"), "early, and again at start")
	require.Positive(t, phases["early"])
	require.Positive(t, phases["start"])
}

func countRows(report doctorReport, id string) (n int) {
	for _, row := range report.Checks {
		if row.ID == id {
			n++
		}
	}
	return n
}

func TestDoctor_ExitCodes(t *testing.T) {
	t.Parallel()
	listener := target(t)
	for name, row := range map[string]struct {
		env     []string
		args    []string
		code    int
		failed  string // the row that fails …
		says    []string
		origin  string
		warning bool
	}{
		"too little memory": {
			env: []string{"RUNPOD_MIN_MEMORY_GB=99999"}, code: 1, failed: "memory",
			says: []string{"GB"}, origin: "RUNPOD_MIN_MEMORY_GB",
		},
		"a GPU that must be there": {env: []string{"RUNPOD_GPU_COUNT=1"}, code: 1, failed: "gpu_health", origin: "RUNPOD_GPU_COUNT"},
		"GPUs by flag":             {args: []string{"--gpus", "2"}, code: 1, failed: "gpu_health", origin: "--gpus"},
		"a variable that makes no sense": {
			env: []string{"RUNPOD_MIN_MEMORY_GB=plenty"}, code: 1, failed: "memory", says: []string{"RUNPOD_MIN_MEMORY_GB", "plenty"},
		},
		"nobody listens": {args: []string{"--target", "127.0.0.1:1"}, code: 1, failed: "network", says: []string{"127.0.0.1:1"}},
		"left out":       {env: []string{"RUNPOD_MIN_MEMORY_GB=99999"}, args: []string{"--skip", "memory"}, code: 0},
		"only one":       {env: []string{"RUNPOD_MIN_MEMORY_GB=99999"}, args: []string{"--only", "disk,network"}, code: 0},
		"one phase":      {args: []string{"--phase", "early", "--target", "127.0.0.1:1"}, code: 0},
		"a warning":      {env: []string{"RUNPOD_ENDPOINT_ID=e", "RUNPOD_VOLUME_ID=v"}, args: []string{"--only", "system"}, code: 0},
		"a warning, strictly": {
			env: []string{"RUNPOD_ENDPOINT_ID=e", "RUNPOD_VOLUME_ID=v"}, args: []string{"--only", "system", "--strict"}, code: 1,
		},
		"switched off": {env: []string{"RUNPOD_SKIP_AUTO_SYSTEM_CHECKS=true", "RUNPOD_MIN_MEMORY_GB=99999"}, code: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--target", listener}, row.args...)
			code, report := doctor(t, append(append([]string{}, roomy...), row.env...), args...)
			require.Equal(t, row.code, code, report)
			require.Equal(t, row.code == 0, report.OK)
			if row.failed == "" {
				return
			}
			failed := report.row(t, row.failed)
			require.Contains(t, []string{"fail", "error"}, failed.Status)
			require.NotEmpty(t, failed.Remedy)
			for _, word := range row.says {
				require.Contains(t, failed.Summary, word)
			}
			if row.origin != "" {
				require.NotNil(t, failed.Threshold)
				require.Equal(t, row.origin, failed.Threshold.Origin)
			}
		})
	}
}

// A whole run has a bound too: what is not done by then fails, and what follows is not run.
func TestDoctor_TimeForAllTogether(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "checks.yaml")
	require.NoError(t, os.WriteFile(file, []byte("checks:\n  - {name: Slow, exec: [sleep, '60']}\n  - {name: Late, exec: ['true']}\n"), 0o600))
	code, report := doctor(t, roomy, "--only", "slow,late", "--checks", file, "--total-timeout", "1s")
	require.Equal(t, 1, code)
	require.Equal(t, "fail", report.row(t, "slow").Status)
	require.Equal(t, "all checks together may take 1s", report.row(t, "slow").Summary)
	require.Equal(t, "skip", report.row(t, "late").Status)
}

func TestDoctor_RegisteredChecks(t *testing.T) {
	t.Parallel()
	// With the module of the binary, not the official package: an interpreter without any is enough.
	code, report := doctor(t, roomy, "--only", "handler", "--timeout", "5s", "--handler", handler(t, "checks.py"))
	require.Equal(t, 1, code)
	require.Equal(t, "pass", report.row(t, "handler").Status, report.row(t, "handler").Summary)
	names := []string{}
	for _, row := range report.Checks[1:] {
		names = append(names, row.Title+" "+row.Status)
	}
	require.Equal(t, []string{
		"good pass", "good_async pass", "failing fail", "hanging fail", "leaving fail", "good pass",
	}, names, "each has a row of its own, in the order of registration")
	require.Contains(t, report.Checks[1].Output, "looking around")
	require.Equal(t, "the model is missing", report.Checks[3].Summary)
	require.Contains(t, report.Checks[3].Output, "looked in /models")
	require.Contains(t, report.Checks[4].Summary, "no answer within")
	require.Contains(t, report.Checks[5].Summary, "exit code 3")
	require.Contains(t, report.Checks[5].Output, "last words")
	require.Less(t, len(report.Checks[5].Output), 64<<10, "what it prints is capped")
}

// What --only and --skip take are the ids of the report, also those of checks that a handler registered.
func TestDoctor_PickRegisteredChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"only": {[]string{"--only", "yours.failing"}, 1, []string{"handler pass", "yours.failing fail"}},
		"beside another": {
			[]string{"--only", "memory,yours.good"},
			0,
			[]string{"memory pass", "handler pass", "yours.good pass"},
		},
		"skip": {
			[]string{"--only", "handler", "--skip", "yours.failing,yours.hanging,yours.leaving"},
			0,
			[]string{
				"handler pass", "yours.good pass", "yours.good_async pass", "yours.failing skip", "yours.hanging skip",
				"yours.leaving skip", "yours.good#2 pass",
			},
		},
		"none of that name": {[]string{"--only", "yours.other"}, 1, []string{"handler error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, report := doctor(t, roomy, append(c.args, "--handler", handler(t, "checks.py"))...)
			var got []string
			for _, row := range report.Checks {
				got = append(got, row.ID+" "+row.Status)
			}
			require.Equal(t, c.want, got)
			require.Equal(t, c.code, code)
		})
	}
}

func TestDoctor_HandlerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	code, report := doctor(t, roomy, "--only", "handler", "--handler", handler(t, "broken.py"))
	require.Equal(t, 1, code)
	row := report.row(t, "handler")
	require.Equal(t, "fail", row.Status)
	require.NotEmpty(t, row.Output, "the last lines of the program")
}

func TestDoctor_ChecksFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "checks.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
checks:
  - name: weights
    files: [`+file+`]
  - name: token
    env: [HF_TOKEN]
  - name: slow tool
    exec: [sleep, "60"]
    timeout: 500ms
`), 0o600))
	code, report := doctor(t, roomy, "--target", target(t), "--checks", file)
	require.Equal(t, 1, code)
	states := map[string]string{}
	for _, row := range report.Checks {
		states[row.Title] = row.Status
	}
	require.Equal(t, "pass", states["weights"])
	require.Equal(t, "fail", states["token"])
	require.Equal(t, "fail", states["slow tool"])
}

// CT-05: what is wrong with the command line is said in one line, as JSON where JSON was asked for.
func TestCT05DoctorUsage(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"phase":         {"--phase", "later"},
		"unknown check": {"--only", "nonsense"},
		"checks file":   {"--checks", "nowhere.yaml"},
		"target":        {"--target", "nowhere"},
		"unknown flag":  {"--no-such-flag"},
		"handler":       {"--handler", "nowhere.py"},
		"bad time":      {"--watch", "soon"},
		"negative":      {"--gpus", "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := runToEnd(t, command{args: append([]string{binary(t), "doctor"}, args...), dir: t.TempDir()})
			require.Equal(t, 2, p.wait(t))
			require.Len(t, p.stderr.lines(), 1, p.stderr)
			require.Empty(t, p.stdout.String())

			p = runToEnd(t, command{args: append([]string{binary(t), "doctor", "--json"}, args...), dir: t.TempDir()})
			require.Equal(t, 2, p.wait(t))
			require.Empty(t, p.stdout.String())
			var problem map[string]any
			require.NoError(t, json.Unmarshal([]byte(p.stderr.String()), &problem), p.stderr)
			require.Equal(t, "usage", problem["code"])
			require.NotEmpty(t, problem["error"])
		})
	}
}

// CT-01, CT-06: without a terminal the doctor prints lines, without colour, and comes to the same end.
func TestCT01DoctorWithoutATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]command{
		"no terminal":    {},
		"a new session":  {args: []string{"setsid", "--wait"}},
		"CI":             {env: []string{"CI=true"}},
		"a dumb one":     {env: []string{"TERM=dumb"}},
		"plain":          {env: []string{"PLAIN=1"}},
		"nobody listens": {deaf: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.args = append(c.args, binary(t), "doctor", "--target", target(t))
			c.env = append(append(c.env, roomy...), "RUNPOD_MIN_MEMORY_GB=99999")
			c.dir = t.TempDir()
			p := runToEnd(t, c)
			require.Equal(t, 1, p.wait(t), p.stderr)
			if c.deaf {
				return
			}
			require.Contains(t, p.stdout.String(), "FAIL")
			require.Contains(t, p.stdout.String(), "99999")
			require.NotContains(t, p.stdout.String(), "\x1b")
		})
	}
}

// FG-07, CT-08: what hangs costs its own row; an interrupted doctor is gone in a second, with everything it started.
func TestCT08DoctorInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "checks.yaml")
	pidFile := filepath.Join(dir, "pid")
	require.NoError(t, os.WriteFile(file, []byte(`
checks:
  - name: stubborn
    exec: "trap '' TERM INT; echo $$ > `+pidFile+`; while :; do sleep 1; done"
    timeout: 10m
`), 0o600))
	p := start(t, command{args: []string{binary(t), "doctor", "--target", target(t), "--checks", file}, env: roomy, dir: dir})
	eventually(t, func() bool { text, err := os.ReadFile(pidFile); return err == nil && len(text) > 0 }, "the check runs")
	eventually(t, func() bool { return strings.Contains(p.stdout.String(), "memory") }, "other checks have finished")
	p.signal(t, syscall.SIGTERM)
	require.Equal(t, 130, p.waitFor(t, patience))
	text, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	eventually(t, func() bool { return !proc.Alive(pid) }, "no child is left")
}

func TestDoctor_SignalsLeaveNoChild(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]syscall.Signal{
		"two signals":          {syscall.SIGTERM, syscall.SIGINT},
		"the terminal is gone": {syscall.SIGHUP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leavesNoChild(t, signals...)
		})
	}
}

func leavesNoChild(t *testing.T, signals ...syscall.Signal) {
	t.Helper()
	dir := t.TempDir()
	pidFile := filepath.Join(dir, "pid")
	file := filepath.Join(dir, "handler.py")
	require.NoError(t, os.WriteFile(file, []byte(`
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("`+pidFile+`", "w") as f:
    f.write(str(os.getpid()))
time.sleep(1000)
`), 0o600))
	temp := filepath.Join(dir, "tmp")
	require.NoError(t, os.Mkdir(temp, 0o700))
	hangups := make(chan os.Signal, 1) // below nohup they would be ignored, there too
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	p := start(t, command{
		args: []string{binary(t), "doctor", "--only", "handler", "--python", python(t), "--handler", file},
		env:  append([]string{"TMPDIR=" + temp}, roomy...), dir: dir,
	})
	eventually(t, func() bool { text, err := os.ReadFile(pidFile); return err == nil && len(text) > 0 }, "the handler loads")
	for _, sig := range signals {
		p.signal(t, sig)
	}
	require.Equal(t, 130, p.waitFor(t, patience))
	text, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	eventually(t, func() bool { return !proc.Alive(pid) }, "no child is left")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDoctor_Watch(t *testing.T) {
	t.Parallel()
	p := start(t, command{args: []string{
		binary(t), "doctor", "--json", "--watch", "10ms", "--only", "memory,disk",
	}, env: roomy, dir: t.TempDir()})
	eventually(t, func() bool { return strings.Count(p.stdout.String(), `"schema"`) > 2 }, "it runs again and again")
	p.signal(t, syscall.SIGINT)
	require.Equal(t, 130, p.waitFor(t, patience))
	dec := json.NewDecoder(strings.NewReader(p.stdout.String()))
	for dec.More() {
		var report doctorReport
		require.NoError(t, dec.Decode(&report))
	}
}

func TestDoctor_WatchInterruptedBetweenRounds(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"--json", "--plain"} {
		p := start(t, command{args: []string{
			binary(t), "doctor", form, "--watch", "1h", "--only", "memory",
		}, env: roomy, dir: t.TempDir()})
		last := map[string]string{"--json": `"memory"`, "--plain": "1 passed"}[form]
		eventually(t, func() bool { return strings.Contains(p.stdout.String(), last) }, "the first round is over")
		p.signal(t, syscall.SIGINT)
		require.Equal(t, 130, p.waitFor(t, patience), form)
	}
}

func TestDoctor_List(t *testing.T) {
	t.Parallel()
	p := runToEnd(t, command{args: []string{binary(t), "doctor", "--list"}, dir: t.TempDir()})
	require.Zero(t, p.wait(t))
	for _, id := range append([]string{"memory", "disk", "network", "system"}, gpuRows...) {
		require.Contains(t, p.stdout.String(), id)
	}
}
