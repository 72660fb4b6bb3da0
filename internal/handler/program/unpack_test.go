package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnpack(t *testing.T) {
	t.Run("long path", func(t *testing.T) {
		base := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
		require.NoError(t, os.Mkdir(base, 0o700))
		_, err := unpackBelow(base)
		require.ErrorContains(t, err, "too long for a socket; set TMPDIR to a shorter path")
		left, err := os.ReadDir(base)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("a path that PYTHONPATH would split", func(t *testing.T) {
		base := filepath.Join(t.TempDir(), "a:b")
		require.NoError(t, os.Mkdir(base, 0o700))
		_, err := unpackBelow(base)
		require.ErrorContains(t, err, "a path with ':' cannot stand in PYTHONPATH; set TMPDIR to another one")
		left, err := os.ReadDir(base)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("no place", func(t *testing.T) {
		_, err := unpackBelow(filepath.Join(t.TempDir(), "absent"))
		require.ErrorIs(t, err, os.ErrNotExist)
	})
	t.Run("only sources", func(t *testing.T) {
		d, err := unpack(places())
		require.NoError(t, err)
		defer d.remove()
		require.FileExists(t, filepath.Join(d.dir, "shim", "runpod", "__init__.py"))
		compiled, err := filepath.Glob(filepath.Join(d.dir, "shim", "runpod", "*", "__pycache__", "*"))
		require.NoError(t, err)
		require.Empty(t, compiled)
	})
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name        string
		env         []string
		worker      string
		path, podID string
	}{
		{"none", nil, "", "/private/shim", ""},
		{"of the user", []string{"PYTHONPATH=/a:/b", "A=1"}, "w", "/private/shim:/a:/b", "w"},
		{"twice", []string{"PYTHONPATH=/a", "PYTHONPATH=/b", "RUNPOD_POD_ID=old"}, "", "/private/shim:/b", "old"},
		{"replaced", []string{"RUNPOD_POD_ID=old"}, "new", "/private/shim", "new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := New(Options{WorkerID: tt.worker})
			p.env, p.doors = tt.env, &doors{dir: "/private"}
			env := p.environment()
			require.Equal(t, tt.path, lookup(env, "PYTHONPATH"))
			require.Equal(t, tt.podID, lookup(env, "RUNPOD_POD_ID"))
			require.Equal(t, "/private/s", lookup(env, socketVariable))
			require.Equal(t, "1", lookup(env, "PYTHONUNBUFFERED"))
		})
	}
}

func TestCommand(t *testing.T) {
	require.Equal(t, []string{"python3", "-u", "h.py"}, Command("h.py", ""))
	require.Equal(t, []string{"/v/python", "-u", "a:b.py", "--x"}, Command("a:b.py", "/v/python", "--x"))
	require.Equal(t, []string{"python3", "-u", "-c", launcher, "h.py", "f", "1"}, Command("h.py:f", "", "1"))
}
