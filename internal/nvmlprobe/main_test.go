package nvmlprobe_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

// programs is the folder of the helper, which is built once.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "nvmlprobe"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(programs)
		os.Exit(code)
	}))
}

// These tests do not import the package that they test, but run the program: linked into a test it would be bound
// to the driver's library as the C compiler likes, and might not start.

// box is a machine with fake GPUs.
type box struct {
	libs   gpufake.Libs
	rules  string
	values string
	gpus   int
	env    []string
}

// command is the helper program, ready to start in that box.
func (b box) command(t *testing.T, mode ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), probe(t), mode...)
	cmd.Env = append(b.libs.Env(b.rules, b.values, b.gpus), b.env...)
	return cmd
}

// probe is the path of the helper.
func probe(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(programs, "runpodctl-worker-nvml-probe")
	if _, err := os.Stat(bin); err != nil {
		_, built := gpufake.Helpers(t, programs)
		require.Equal(t, bin, built)
	}
	return bin
}

// report is what the helper said.
type report struct {
	lines  []wire.Line
	exit   int
	stderr string
}

// run runs the helper to its end.
func (b box) run(t *testing.T, mode string) report {
	t.Helper()
	return run(t, b.command(t, mode))
}

func run(t *testing.T, cmd *exec.Cmd) report {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	lines := listen(t, cmd)
	var r report
	for line := range lines {
		r.lines = append(r.lines, line)
	}
	r.exit, r.stderr = wait(t, cmd), stderr.String()
	return r
}

// listen starts a helper and reads its report.
func listen(t *testing.T, cmd *exec.Cmd) <-chan wire.Line {
	t.Helper()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{out}
	require.NoError(t, cmd.Start())
	require.NoError(t, out.Close())
	lines := make(chan wire.Line)
	go func() {
		defer close(lines)
		defer in.Close()
		for scan := bufio.NewScanner(in); scan.Scan(); {
			var line wire.Line
			if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
				t.Errorf("not a line of the wire: %s", scan.Bytes())
			}
			lines <- line
		}
	}()
	return lines
}

// wait returns the exit code of a helper.
func wait(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	require.NoError(t, err)
	return 0
}

// step returns the line that ended a step, once it is sure that the step was announced, and ended once.
func (r report) step(t *testing.T, step wire.Step, gpu int) wire.Line {
	t.Helper()
	var got []wire.Line
	for _, line := range r.lines {
		if line.Step == step && line.GPU == gpu {
			got = append(got, line)
		}
	}
	require.Len(t, got, 2, "%s of GPU %d begins and ends: %+v", step, gpu, r.lines)
	require.Equal(t, wire.StateBegin, got[0].State)
	require.NotEqual(t, wire.StateBegin, got[1].State)
	return got[1]
}

// health is what a GPU that answered said.
func (r report) health(t *testing.T, gpu int) wire.Health {
	t.Helper()
	line := r.step(t, wire.NVMLHealth, gpu)
	require.Equal(t, wire.StateOK, line.State, "%+v", line)
	return data[wire.Health](t, line)
}

// requireEnd makes sure that the helper told all and ended well.
func (r report) requireEnd(t *testing.T) {
	t.Helper()
	require.Zero(t, r.exit, "%s", r.stderr)
	require.NotEmpty(t, r.lines)
	require.Equal(t, wire.Line{State: wire.StateEnd, GPU: wire.NoGPU}, r.lines[len(r.lines)-1])
}

// verdict is what a line says but for its place, its time and its data.
func verdict(line wire.Line) wire.Line {
	return wire.Line{State: line.State, Call: line.Call, Code: line.Code, Detail: line.Detail}
}

func data[T any](t *testing.T, line wire.Line) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(line.Data, &v), "%+v", line)
	return v
}

// garbage makes a folder with a library that is none.
func garbage(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "libnvidia-ml.so.1"), []byte(strings.Repeat("not a library ", 100)), 0o600))
	return dir
}

// foreign makes a folder with a library of another kind under NVML's name, which may need one that is not there.
func foreign(t *testing.T, needs string) string {
	t.Helper()
	dir, args := t.TempDir(), []string{"-shared", "-x", "c", os.DevNull}
	if needs != "" {
		gone := filepath.Join(t.TempDir(), needs)
		compile(t, "-shared", "-x", "c", os.DevNull, "-Wl,-soname,"+needs, "-o", gone)
		args = append(args, "-x", "none", "-Wl,--no-as-needed", gone)
	}
	compile(t, append(args, "-o", filepath.Join(dir, "libnvidia-ml.so.1"))...)
	return dir
}

func compile(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "gcc", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
