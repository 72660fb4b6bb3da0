package gpufake

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Helpers builds the GPU helper programs in dir as a release has them. They call themselves version "test".
func Helpers(t testing.TB, dir string) (cuda, nvml string) {
	t.Helper()
	Build(t) // says what to do where there is no C compiler
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	require.NoError(t, err)
	root := filepath.Dir(strings.TrimSpace(string(gomod)))
	cmd := exec.Command(filepath.Join(root, "build", "helpers.sh"), "beside", dir)
	cmd.Env = append(os.Environ(), "VERSION=test")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, "runpodctl-worker-cuda-probe"), filepath.Join(dir, "runpodctl-worker-nvml-probe")
}
