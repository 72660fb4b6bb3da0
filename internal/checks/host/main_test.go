package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files is a machine by the paths and contents of its files; a path that ends in a slash is a folder.
type files map[string]string

// boxOf lays the files out.
func boxOf(t *testing.T, f files) box {
	t.Helper()
	root := t.TempDir()
	for path, text := range f {
		file := filepath.Join(root, path)
		if strings.HasSuffix(path, "/") {
			require.NoError(t, os.MkdirAll(file, 0o755))
			continue
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return box{root}
}

func linuxOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("cgroups, /proc and what they show are Linux's")
	}
}

// configOf reads NAME=value pairs.
func configOf(pairs ...string) checks.Config {
	return checks.ConfigFrom(config.Overlay(func(string) (string, bool) { return "", false }, pairs))
}

// facts are the facts of a result by name.
func factsOf(r checks.Result) map[string]any {
	all := map[string]any{}
	for _, f := range r.Facts {
		all[f.Name] = f.Value
	}
	return all
}
