package nvmlprobe_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

func TestStart_WithoutALibrary(t *testing.T) {
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("this machine has a driver of its own, which would be found")
	}
	b := box{gpus: 1}
	for _, test := range []struct {
		name   string
		dir    string
		code   int
		detail string
	}{
		{"none", t.TempDir(), 12, "there is no libnvidia-ml.so.1"},
		{"not a library", garbage(t), 0, "invalid ELF header"},
		{"not NVML", foreign(t, ""), 0, "libnvidia-ml.so.1 is not NVML: it has no nvmlInit_v2"},
		{"needs a library that is not here", foreign(t, "libgone.so.1"), 0, "libgone.so.1: cannot open shared object file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.env = []string{"LD_LIBRARY_PATH=" + test.dir}
			got := b.run(t, "watch")
			got.requireEnd(t)
			line := got.step(t, wire.NVMLLoad, wire.NoGPU)
			require.Equal(t, wire.StateFail, line.State)
			require.Equal(t, "dlopen", line.Call)
			require.Equal(t, test.code, line.Code)
			require.Contains(t, line.Detail, test.detail)
			require.Len(t, got.lines, 3, "nothing more is asked")
		})
	}
}

// Functions of the driver are bound when they are called. Where the environment wants all bound at the start, the
// loader ends the helper before it begins, with its own exit code: whoever starts it clears that variable.
func TestStart_BindNow(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVML), gpus: 1}
	for _, test := range []struct {
		name string
		env  string
		exit int
	}{
		{"set", "LD_BIND_NOW=1", 127},
		{"empty", "LD_BIND_NOW=", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.env = []string{test.env}
			got := b.run(t, "health")
			require.Equal(t, test.exit, got.exit)
			if test.exit == 0 {
				got.requireEnd(t)
				return
			}
			require.Empty(t, got.lines)
			require.Contains(t, got.stderr, "undefined symbol: nvml")
		})
	}
}

// The images in use are older than the machine that builds a release.
func TestStart_OldGlibc(t *testing.T) {
	program, err := elf.Open(probe(t))
	require.NoError(t, err)
	defer program.Close()
	symbols, err := program.ImportedSymbols()
	require.NoError(t, err)
	oldest := checks.Version{Major: 2, Minor: 17}
	for _, symbol := range symbols {
		if number, ok := strings.CutPrefix(symbol.Version, "GLIBC_"); ok {
			version, err := checks.ParseVersion(number)
			require.NoError(t, err)
			require.False(t, oldest.Less(version), "%s wants glibc %s", symbol.Name, version)
		}
	}
}

func TestStart_WithoutCgo(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "probe")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "runpodctl-worker/cmd/runpodctl-worker-nvml-probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	got := run(t, exec.CommandContext(t.Context(), bin, "health"))
	got.requireEnd(t)
	line := got.step(t, wire.NVMLLoad, wire.NoGPU)
	require.Equal(t, wire.StateFail, line.State)
	require.Equal(t, "built without NVML", line.Detail)
}

func TestStart_Usage(t *testing.T) {
	b := box{}
	const usage = "usage: runpodctl-worker-nvml-probe health|watch|--version\n"
	for _, test := range []struct {
		name   string
		args   []string
		exit   int
		stdout string
		stderr string
	}{
		{"version", []string{"--version"}, 0, "runpodctl-worker-nvml-probe test\n", ""},
		{"no mode", nil, 2, "", usage},
		{"unknown mode", []string{"heal"}, 2, "", usage},
		{"too much", []string{"health", "watch"}, 2, "", usage},
		{"nobody listens", []string{"health"}, 2, "", "runpodctl-worker-nvml-probe: nobody listens on descriptor 3: " +
			"this program is started by runpodctl-worker\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := b.command(t, test.args...)
			stdout, stderr := new(bytes.Buffer), new(bytes.Buffer)
			cmd.Stdout, cmd.Stderr = stdout, stderr
			require.NoError(t, cmd.Start())
			require.Equal(t, test.exit, wait(t, cmd))
			require.Equal(t, test.stdout, stdout.String())
			require.Equal(t, test.stderr, stderr.String())
		})
	}
}

// A parent that has gone hears nothing: the helper ends by itself.
func TestStart_ParentIsGone(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVML), gpus: 1}
	in, out, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, in.Close())
	cmd := b.command(t, "health")
	stderr := new(bytes.Buffer)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{out}, stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, out.Close())
	require.Equal(t, 1, wait(t, cmd))
	require.Contains(t, stderr.String(), "cannot report")
}
