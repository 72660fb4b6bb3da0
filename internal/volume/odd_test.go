package volume

import (
	"archive/tar"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Whatever lies where the lock should be holds nobody up for long.
func TestLock_Odd(t *testing.T) {
	for _, tt := range []struct {
		name  string
		place func(path string) error
		want  string // why nothing is synced
	}{
		{"a pipe", func(path string) error { return unix.Mkfifo(path, 0o644) }, ""},
		{"an empty folder", func(path string) error { return os.Mkdir(path, 0o755) }, ""},
		{"a folder", func(path string) error { return os.MkdirAll(path+"/inner", 0o755) }, "sync.lock: where a file belongs there is a folder"},
		{"a link to nothing", func(path string) error { return os.Symlink("nothing", path) }, ""},
		{"a link that leads out", func(path string) error { return os.Symlink("/etc/passwd", path) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write("small", "s")
			require.NoError(t, os.MkdirAll(r.mirror(), 0o755))
			require.NoError(t, tt.place(r.mirror(lockName)))
			status, err := r.cache().Status(t.Context())
			require.NoError(t, err)
			require.Nil(t, status.Writer)
			report, err := r.cache().Sync(t.Context())
			if tt.want != "" {
				require.ErrorContains(t, err, filepath.Join(r.mirror(), tt.want))
				return
			}
			require.NoError(t, err)
			require.Equal(t, 1, report.Files)
			_, err = os.Lstat(r.mirror(lockName))
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// What cannot be written is named.
func TestLock_ReadOnly(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.Chmod(filepath.Dir(r.base), 0o755)) // the temporary folder of the test
	r.write("small", "s")
	r.sync()
	r.write("small", "changed")
	require.NoError(t, os.Chmod(r.mirror(), 0o555)) // if we are nobody ourselves
	cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{r.dir()}, Once: true, Nobody: true})
	require.True(t, out.Scan())
	require.Equal(t, "begin", out.Text())
	require.True(t, out.Scan())
	require.Equal(t, "0 "+r.mirror()+" cannot be written to: permission denied", out.Text())
	require.NoError(t, cmd.Wait())
	require.NoError(t, os.Chmod(r.mirror(), 0o755))
}

// A folder where a file of the mirror belongs is named, with what to do about it. It may be somebody's, so it stays.
func TestSync_FolderInTheMirror(t *testing.T) {
	for _, name := range []string{manifestName, archiveName} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write("small", "s")
			require.NoError(t, os.MkdirAll(r.mirror(name, "inner"), 0o755))
			_, err := r.cache().Sync(t.Context())
			require.ErrorContains(t, err, r.mirror(name)+" is a folder, where a file belongs: remove it")
			require.DirExists(t, r.mirror(name, "inner"))
			require.NoError(t, os.RemoveAll(r.mirror(name)))
			require.Equal(t, 1, r.sync().Files)
			r.fresh()
			require.Equal(t, 1, r.hydrate().Files)
		})
	}
}

// A large file that was a folder before, or the reverse, waits for prune, and the others do not wait for it.
func TestSync_FolderBecomesFile(t *testing.T) {
	for _, tt := range []struct{ name, before, after string }{
		{"folder, then file", "model/weights", "model"},
		{"file, then folder", "model", "model/weights"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write(tt.before, large("b"))
			r.sync()
			r.fresh()
			path := r.write(tt.after, large("a"))
			r.write("other", large("o"))
			report := r.sync()
			require.Equal(t, 1, report.Files)
			require.Equal(t, []Skip{{path, errInTheWay.Error()}}, report.Skipped)

			c := r.cache()
			c.limits.temps = 0
			_, err := c.Prune(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, 1, r.sync().Files)
			found, err := r.cache().Verify(t.Context(), false)
			require.NoError(t, err)
			require.Equal(t, Findings{Files: 2, Bytes: int64(2 * len(large("a"))), Seconds: found.Seconds}, found)
		})
	}
}

// A folder that took the place of a large file which the manifest names costs this file, not the sync.
func TestSync_FolderInPlaceOfALargeFile(t *testing.T) {
	r := newRig(t)
	path := r.write("model", large("m"))
	r.sync()
	require.NoError(t, os.Remove(r.mirror(bigName, path)))
	require.NoError(t, os.MkdirAll(r.mirror(bigName, path, "inner"), 0o755))
	r.write("other", large("o"))
	report := r.sync()
	require.Equal(t, 1, report.Files)
	require.Equal(t, []Skip{{path, errInTheWay.Error()}}, report.Skipped)
}

// An archive that no reader gets through is rot, wherever its headers lead.
func TestVerify_RepairsAnyArchive(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header tar.Header
	}{
		{"a member of the largest size", tar.Header{Name: "x", Size: math.MaxInt64}},
		{"one that ends just before it", tar.Header{Name: "x", Size: math.MaxInt64 - 1000}},
		{"one that ends behind the archive", tar.Header{Name: "x", Size: 1 << 40}},
		{"a name that is too long to be read", tar.Header{Name: strings.Repeat("x", 2<<20)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write("small", "s")
			r.sync()
			var b bytes.Buffer
			tt.header.Typeflag, tt.header.Format = tar.TypeReg, tar.FormatGNU
			require.NoError(t, tar.NewWriter(&b).WriteHeader(&tt.header))
			require.NoError(t, os.WriteFile(r.mirror(archiveName), b.Bytes(), 0o644))
			found, err := r.cache().Verify(t.Context(), true)
			require.NoError(t, err)
			require.Equal(t, 1, found.ProblemsTotal)
			require.Equal(t, []string{archiveName}, found.Removed)
			r.sync()
			found, err = r.cache().Verify(t.Context(), false)
			require.NoError(t, err)
			require.Zero(t, found.ProblemsTotal, found)
		})
	}
}

// Rot goes when it is told to, and the next sync of somebody who has the right bytes brings them again.
func TestVerify_Repair(t *testing.T) {
	r := newRig(t)
	files := map[string]string{"small": "small", "big": large("b"), "other": large("o")}
	for name, text := range files {
		r.write(name, text)
	}
	r.sync()
	flip(t, r.mirror(archiveName), fileOffset(t, r.mirror(archiveName), "small\x00"))
	flip(t, r.mirror(bigName, r.dir(), "big"), 5)
	require.Zero(t, r.sync().Files, "a sync does not read what has not changed")

	found, err := r.cache().Verify(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 2, found.ProblemsTotal)
	require.Equal(t, []string{bigName + filepath.Join(r.dir(), "big"), archiveName}, found.Removed)
	require.NoFileExists(t, r.mirror(lockName))

	require.Positive(t, r.sync().Files)
	found, err = r.cache().Verify(t.Context(), true)
	require.NoError(t, err)
	require.Zero(t, found.ProblemsTotal, found)
	require.Empty(t, found.Removed)
	r.fresh()
	report := r.hydrate()
	require.Equal(t, len(files), report.Files)
	require.Equal(t, 1, report.Small)
	for name, text := range files {
		require.Equal(t, text, read(t, filepath.Join(r.dir(), name)))
	}
}

// The Python class brings again what was taken out, too.
func TestVerify_RepairForThePythonClass(t *testing.T) {
	r := newRig(t)
	for name, text := range map[string]string{"small": "small", "other": "other", "big": large("b"), "refs/main": "r"} {
		r.write(name, text)
	}
	r.sync()
	want := contents(t, r.dir())
	require.NoError(t, os.Truncate(r.mirror(archiveName), 100))
	require.NoError(t, os.Truncate(r.mirror(bigName, r.dir(), "big"), 100))
	found, err := r.cache().Verify(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 4, found.ProblemsTotal)
	require.Equal(t, []string{bigName + filepath.Join(r.dir(), "big"), archiveName}, found.Removed)

	r.python("sync")
	found, err = r.cache().Verify(t.Context(), false)
	require.NoError(t, err)
	require.Zero(t, found.ProblemsTotal, found)
	r.fresh()
	r.hydrate()
	delete(want, "refs/main") // which the class leaves out
	require.Equal(t, want, contents(t, r.dir()))
}

// What the archive has not is no reason to take away the rest. A small file that the Python class has packed as a hard link comes back
// with our next sync.
func TestVerify_RepairOfHardLinks(t *testing.T) {
	r := newRig(t)
	require.NoError(t, os.Link(r.write("one", "text"), filepath.Join(r.dir(), "other")))
	want := contents(t, r.dir())
	r.python("sync")
	found, err := r.cache().Verify(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, 1, found.ProblemsTotal)
	require.Equal(t, errAbsent.Error(), found.Problems[0].What)
	require.Empty(t, found.Removed)

	r.sync()
	found, err = r.cache().Verify(t.Context(), false)
	require.NoError(t, err)
	require.Zero(t, found.ProblemsTotal, found)
	r.fresh()
	r.hydrate()
	require.Equal(t, want, contents(t, r.dir()))
}

// A manifest that no reader would take is not written.
func TestManifest_TooLarge(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), manifestName))
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	require.NoError(t, file.Truncate(maxManifest))
	require.NoError(t, checkLength(file))
	require.NoError(t, file.Truncate(maxManifest+1))
	require.ErrorContains(t, checkLength(file), "cache fewer files")
}
