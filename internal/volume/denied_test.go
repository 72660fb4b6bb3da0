package volume

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is not here because this user may not have it is not taken from those who may.
func TestSync_WhatThisUserMayNotHave(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(r *rig)
		want string // what the sync prints: how many files, or why there are none
		kept []string
	}{
		{"a folder that may not be written", func(r *rig) {
			require.NoError(r.t, os.RemoveAll(filepath.Join(r.dir(), "locked")))
			r.write("locked/other", "o")
			require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "locked"), 0o555))
		}, "the mirror would lose DIR/locked/big, which this user may not read or write (permission denied)", []string{"locked/big", "locked/small", "own"}},
		{"a folder that may not be seen", func(r *rig) {
			require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "locked"), 0))
		}, "the mirror would lose DIR/locked/big, which this user may not read or write (permission denied)", []string{"locked/big", "locked/small", "own"}},
		{"a small file that may not be read", func(r *rig) {
			require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "locked/small"), 0))
			r.write("own", "changed")
		}, "the mirror would lose DIR/locked/small, which this user may not read or write", []string{"locked/big", "locked/small", "own"}},
		{"a large file that may not be read", func(r *rig) {
			require.NoError(r.t, os.Chmod(r.write("locked/big", large("changed")), 0))
		}, "the mirror would lose DIR/locked/big, which this user may not read or write", []string{"locked/big", "locked/small", "own"}},
		{"a large file that may not be read in the mirror", func(r *rig) {
			require.NoError(r.t, os.Remove(filepath.Join(r.dir(), "locked/big")))
			require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "locked"), 0o777))
			require.NoError(r.t, os.Chmod(r.mirror(bigName, r.dir(), "locked/big"), 0o600))
		}, "the mirror would lose DIR/locked/big, which this user may not read or write (permission denied)", []string{"locked/big", "locked/small", "own"}},
		{"an older file that may not be replaced", func(r *rig) {
			age(r.t, r.write("locked/small", "older"), time.Hour)
			require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "locked"), 0o555))
			r.write("own", "changed")
		}, "the mirror would lose DIR/locked/small, which this user may not read or write (permission denied)", []string{"locked/big", "locked/small", "own"}},
		{"an older file that was put there on purpose", func(r *rig) {
			age(r.t, r.write("locked/small", "older"), time.Hour)
			require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "locked"), 0o777))
		}, "1 <nil>", []string{"locked/big", "locked/small", "own"}},
		{"a link that may not be made", func(r *rig) {
			require.NoError(r.t, os.Remove(filepath.Join(r.dir(), "links/own")))
		}, "the mirror would lose DIR/links/own, which this user may not read or write (permission denied)", []string{"locked/big", "locked/small", "own"}},
		{"a new file that may not be read", func(r *rig) {
			require.NoError(r.t, os.Chmod(r.write("new", "n"), 0))
			r.write("own", "changed")
		}, "1 <nil>", []string{"locked/big", "locked/small", "own"}},
		{"files that were removed", func(r *rig) {
			require.NoError(r.t, os.RemoveAll(filepath.Join(r.dir(), "locked")))
		}, "0 <nil>", []string{"own"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			require.NoError(t, os.Chmod(filepath.Dir(r.base), 0o755)) // the temporary folder of the test
			r.write("locked/big", large("b"))
			r.write("locked/small", "s")
			r.write("own", "o")
			r.link("links/own", "../own")
			r.sync()
			r.everybodys(r.volume)
			tt.do(r)
			require.NoError(t, os.Chmod(r.dir(), 0o777))
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(r.dir(), "locked"), 0o755) })

			cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{r.dir()}, Once: true, Nobody: true})
			require.True(t, out.Scan())
			require.Equal(t, "begin", out.Text())
			require.True(t, out.Scan())
			require.NoError(t, cmd.Wait())
			require.Contains(t, out.Text(), strings.ReplaceAll(tt.want, "DIR", r.dir()))
			m, err := r.readManifest()
			require.NoError(t, err)
			for _, name := range tt.kept {
				require.Contains(t, m.files, filepath.Join(r.dir(), name))
			}
			require.Len(t, m.files, len(tt.kept))
			require.Len(t, m.Links, 1)
			require.NoError(t, os.Chmod(filepath.Join(r.dir()), 0o755))
			found, err := r.cache().Verify(t.Context(), false)
			require.NoError(t, err)
			require.Zero(t, found.ProblemsTotal, found)
		})
	}
}

// A folder that cannot be looked at, here since this process may open no more of them, is not gone.
func TestSync_WhatCannotBeSeen(t *testing.T) {
	r := newRig(t)
	r.write(strings.Repeat("deep/", 200)+"file", "f")
	r.sync()
	r.write("new", "n")
	cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{r.dir()}, Once: true, Open: 100})
	require.True(t, out.Scan())
	require.Equal(t, "begin", out.Text())
	require.True(t, out.Scan())
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.Text(), "too many open files")
	m, err := r.readManifest()
	require.NoError(t, err)
	require.Contains(t, m.files, filepath.Join(r.dir(), strings.Repeat("deep/", 200), "file"))
}

// everybodys lets everybody write to a folder and what is in it.
func (r *rig) everybodys(folder string) {
	r.t.Helper()
	require.NoError(r.t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o777)
	}))
}

func (r *rig) readManifest() (*manifest, error) {
	root, err := os.OpenRoot(r.mirror())
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readManifest(root)
}
