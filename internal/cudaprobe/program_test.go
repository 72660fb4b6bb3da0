package cudaprobe_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "no mode given"},
		{"unknown mode", []string{"burn"}, `unknown mode "burn"`},
		{"unknown flag", []string{"list", "--gpu", "x"}, "-gpu"},
		{"stray argument", []string{"list", "x"}, `unexpected argument "x"`},
		{"no GPU", []string{"memory"}, "--gpu is missing"},
		{"no target", []string{"peer", "--from", "x"}, "--to is missing"},
		{"no number", []string{"memory", "--gpu", "x", "--bytes", "1k"}, "want a number of bytes"},
		{"half a word", []string{"memory", "--gpu", "x", "--fill-bytes", "6"}, "multiple of 4"},
		{"no memory", []string{"memory", "--gpu", "x", "--bytes", "0"}, "more than 0"},
		{"half a tile", []string{"compute", "--gpu", "x", "--n", "40"}, "multiple of 16"},
		{"matrix too large", []string{"compute", "--gpu", "x", "--n", "8192"}, "want 16 to 4096"},
		{"warm-up only", []string{"compute", "--gpu", "x", "--runs", "1"}, "want 2 to 1000"},
		{"nobody to report to", []string{"list"}, "this program is started by runpodctl-worker"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, err := exec.Command(built, test.args...).CombinedOutput()
			require.Error(t, err)
			failed := err.(*exec.ExitError) //nolint:errorlint // of exec itself
			require.Equal(t, 2, failed.ExitCode(), "%s", out)
			require.Contains(t, string(out), test.want)
		})
	}
}

func TestVersion(t *testing.T) {
	out, err := exec.Command(built, "--version").Output()
	require.NoError(t, err)
	require.Regexp(t, `^runpodctl-worker-cuda-probe \S+\n$`, string(out))
}

func TestHelp(t *testing.T) {
	out, err := exec.Command(built, "--help").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "compute --gpu UUID [--n N]")
}

// What hangs was announced, and what the driver starts does not keep the report open.
func TestHang(t *testing.T) {
	cmd, _ := scene{args: "init --gpu " + gpufake.UUID(0), rules: "cuDevicePrimaryCtxRetain=hang"}.command(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	var line wire.Line
	lines := bufio.NewScanner(r)
	for line.Step != wire.CUDAContext {
		require.True(t, lines.Scan(), "it ended")
		line = wire.Line{}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
	}
	require.Equal(t, wire.StateBegin, line.State)
	info, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", cmd.Process.Pid, wire.ReportFD))
	require.NoError(t, err)
	var at, flags int
	_, err = fmt.Sscanf(string(info), "pos: %d\nflags: %o", &at, &flags)
	require.NoError(t, err, "%s", info)
	require.NotZero(t, flags&unix.O_CLOEXEC)
	require.NoError(t, cmd.Process.Kill())
	require.False(t, lines.Scan(), "%s", lines.Text())
	require.Error(t, cmd.Wait())
}

func TestDeath_HasNoEnd(t *testing.T) {
	for _, action := range []string{"segv", "abort", "exit:0"} {
		t.Run(action, func(t *testing.T) {
			o := scene{args: "init --gpu " + gpufake.UUID(0), rules: "cuMemAlloc_v2=" + action}.run(t)
			last := o.lines[len(o.lines)-1]
			require.Equal(t, wire.CUDAMemory, last.Step)
			require.Equal(t, wire.StateBegin, last.State)
		})
	}
}

func TestReport_NobodyReads(t *testing.T) {
	cmd, trace := scene{args: "list"}.command(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cmd.ExtraFiles = []*os.File{w}
	out, err := cmd.CombinedOutput()
	require.NoError(t, w.Close())
	require.Error(t, err)
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), "broken pipe")
	require.NoFileExists(t, trace, "no GPU is touched when nobody would know")
}
