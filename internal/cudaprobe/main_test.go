package cudaprobe_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe"
	"runpodctl-worker/test/gpufake"
)

// asProbe in the environment makes the test binary the program itself: with cgo and the race detector where the tests
// have them.
const asProbe = "TEST_AS_CUDA_PROBE=1"

// noNap keeps the race detector from sleeping for a second at the end of each process.
const noNap = "GORACE=atexit_sleep_ms=0"

// built is the program as it is released.
var built string

func TestMain(m *testing.M) {
	if name, value, _ := strings.Cut(asProbe, "="); os.Getenv(name) == value {
		os.Exit(cudaprobe.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	dir, err := build()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "cudaprobe"); err != nil {
		return "", err
	}
	built = filepath.Join(dir, "cuda-probe")
	cmd := exec.Command("go", "build", "-o", built, "runpodctl-worker/cmd/runpodctl-worker-cuda-probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
}

// scene is a machine, and how the program is run on it.
type scene struct {
	library gpufake.Variant // the healthy one where it is not set
	args    string
	rules   string
	values  string
	gpus    int
	env     []string
	program string // the one that was built, where it is not set
}

// outcome is what a run came to.
type outcome struct {
	lines []wire.Line
	exit  int
	err   string   // what stood on stderr
	trace []string // calls of the driver
}

func (s scene) command(t *testing.T) (cmd *exec.Cmd, trace string) {
	t.Helper()
	if s.library == (gpufake.Variant{}) {
		s.library = gpufake.CUDA
	}
	if s.program == "" {
		s.program = built
	}
	trace = filepath.Join(t.TempDir(), "trace")
	cmd = exec.Command(s.program, strings.Fields(s.args)...)
	cmd.Env = append(os.Environ(), gpufake.Build(t, s.library).Env(s.rules, s.values, max(s.gpus, 1))...)
	cmd.Env = append(cmd.Env, gpufake.TraceVar+"="+trace)
	cmd.Env = append(cmd.Env, s.env...)
	return cmd, trace
}

// run runs the program to its end and reads its report.
func (s scene) run(t *testing.T) outcome {
	t.Helper()
	cmd, trace := s.command(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.ExtraFiles = []*os.File{w}
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	var o outcome
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var line wire.Line
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line), "%s", lines.Bytes())
		o.lines = append(o.lines, line)
	}
	require.NoError(t, r.Close())
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		require.NoError(t, err)
	}
	o.exit, o.err = cmd.ProcessState.ExitCode(), stderr.String()
	if calls, err := os.ReadFile(trace); err == nil {
		o.trace = strings.Split(strings.TrimSpace(string(calls)), "\n")
	}
	return o
}

// last is the line of the last step. What stands before must be in order: each step begins, then ends well, and
// everything ends.
func (o outcome) last(t *testing.T) wire.Line {
	t.Helper()
	require.Zero(t, o.exit, o.err)
	require.Empty(t, o.err)
	n := len(o.lines)
	require.Positive(t, n)
	require.Equal(t, wire.Line{State: wire.StateEnd, GPU: wire.NoGPU}, o.lines[n-1])
	require.Zero(t, (n-1)%2, "a step that began has no end, or the reverse")
	for i := 0; i < n-1; i += 2 {
		began, ended := o.lines[i], o.lines[i+1]
		require.Equal(t, wire.Line{Step: began.Step, State: wire.StateBegin, GPU: ended.GPU}, began)
		require.Equal(t, began.Step, ended.Step)
		if i+2 < n-1 {
			require.NotEqual(t, wire.StateFail, ended.State, "%+v", ended)
		}
	}
	return o.lines[n-2]
}

// of is what a step reported.
func of[T any](t *testing.T, o outcome, step wire.Step) T {
	t.Helper()
	for _, line := range o.lines {
		if line.Step == step && line.State != wire.StateBegin {
			var data T
			require.NoError(t, json.Unmarshal(line.Data, &data), "%+v", line)
			return data
		}
	}
	require.Fail(t, "no such step", "%s in %+v", step, o.lines)
	panic("unreachable")
}
