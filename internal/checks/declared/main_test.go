package declared

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withEnv is a box with an environment.
func withEnv(pairs ...string) Deps {
	return Deps{Lookup: config.Overlay(func(string) (string, bool) { return "", false }, pairs)}
}

// withGPUs is a box with GPUs, or with an error in their place.
func withGPUs(err error, gpus ...GPU) Deps {
	return Deps{GPUs: func(context.Context) ([]GPU, error) { return gpus, err }}
}

// write puts a file of checks into a folder of its own and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "checks.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// runOne loads a file whose only check has the body, and runs it as a worker does.
func runOne(t *testing.T, body string, deps Deps) checks.Result {
	t.Helper()
	list, err := Load(t.Context(), write(t, "checks:\n  - name: it\n"+body), deps)
	require.NoError(t, err)
	require.Len(t, list, 1)
	var suite checks.Suite
	require.NoError(t, suite.Add(list...))
	report := checks.NewRunner(checks.Options{}).Run(t.Context(), suite.Plan(), nil)
	require.Len(t, report.Rows, 1)
	return report.Rows[0].Result
}
