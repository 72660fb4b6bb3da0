package dynlib_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/cudaprobe/dynlib"
)

// mathlib is a library that each glibc has.
const mathlib = "libm.so.6"

func open(t *testing.T) *dynlib.Library {
	t.Helper()
	lib, err := dynlib.Open(mathlib)
	require.NoError(t, err)
	return lib
}

func TestBind(t *testing.T) {
	for _, test := range []struct{ name, symbols string }{
		{"one name", "abs"},
		{"the first of two", "abs|labs"},
		{"the second of two", "abs_v2|abs"},
		{"optional and there", "abs_v2|abs?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var abs func(int32) int32
			require.NoError(t, open(t).Bind(&abs, test.symbols))
			require.Equal(t, int32(7), abs(-7))
		})
	}
	t.Run("optional and missing", func(t *testing.T) {
		var abs func(int32) int32
		require.NoError(t, open(t).Bind(&abs, "abs_v3|abs_v2?"))
		require.Nil(t, abs)
	})
	t.Run("missing", func(t *testing.T) {
		lib := open(t)
		var abs func(int32) int32
		err := lib.Bind(&abs, "abs_v3|abs_v2")
		require.Equal(t, dynlib.SymbolError{Symbol: "abs_v3", Path: mathlib}, err)
		require.EqualError(t, err, mathlib+" has no function abs_v3")
	})
}

func TestPath_IsThatOfTheFile(t *testing.T) {
	lib := open(t)
	var ldexp func(float64, int32) float64
	require.NoError(t, lib.Bind(&ldexp, "ldexp"))
	require.InDelta(t, 12, ldexp(3, 2), 0)
	require.True(t, filepath.IsAbs(lib.Path), lib.Path)
	require.FileExists(t, lib.Path)
}

func TestOpen_LooksInFolders(t *testing.T) {
	lib := open(t)
	var ldexp func(float64, int32) float64
	require.NoError(t, lib.Bind(&ldexp, "ldexp"))
	text, err := os.ReadFile(lib.Path)
	require.NoError(t, err)
	const name = "libunheard.so.1"
	good, bad := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(good, name), text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(bad, name), []byte("no ELF"), 0o600))

	t.Run("nowhere", func(t *testing.T) {
		_, err := dynlib.Open(name, "/nowhere", "/neither")
		require.Equal(t, dynlib.MissingError{Name: name, Folders: []string{"/nowhere", "/neither"}}, err)
		require.ErrorContains(t, err, "/nowhere, /neither")
	})
	t.Run("in the second", func(t *testing.T) {
		lib, err := dynlib.Open(name, "/nowhere", good)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(good, name), lib.Path)
	})
	t.Run("a broken one is passed over", func(t *testing.T) {
		lib, err := dynlib.Open(name, bad, good)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(good, name), lib.Path)
	})
	t.Run("only a broken one", func(t *testing.T) {
		_, err := dynlib.Open(name, bad)
		require.ErrorContains(t, err, name+" cannot be loaded")
		require.NotErrorAs(t, err, new(dynlib.MissingError))
	})
}
