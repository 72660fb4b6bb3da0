package gpufake

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// NVMLProbe builds the NVML helper in dir, as a release has it, and returns its path. It needs the C compiler that
// Build asks for.
func NVMLProbe(t testing.TB, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "runpodctl-worker-nvml-probe")
	cmd := exec.Command("go", "build", "-ldflags", "-extldflags=-Wl,-z,lazy", "-o", bin,
		"runpodctl-worker/cmd/runpodctl-worker-nvml-probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}
