package volume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestNew_Refuses(t *testing.T) {
	r := newRig(t)
	t.Chdir(r.base)
	tests := []struct {
		name   string
		change func(*Options)
		says   string
	}{
		{"no namespace", func(o *Options) { o.Namespace = "" }, `not ""`},
		{"the folder above", func(o *Options) { o.Namespace = ".." }, `".."`},
		{"two folders", func(o *Options) { o.Namespace = "a/b" }, `"a/b"`},
		{"a backslash", func(o *Options) { o.Namespace = `a\b` }, `"a\\b"`},
		{"a NUL", func(o *Options) { o.Namespace = "a\x00" }, `"a\x00"`},
		{"the root", func(o *Options) { o.Dirs = []string{"/"} }, "root of the file system"},
		{"a directory on the volume", func(o *Options) { o.Dirs = []string{o.Volume + "/models"} }, "needs no cache"},
		{"a directory around the volume", func(o *Options) { o.Dirs = []string{filepath.Dir(o.Volume)} }, "needs no cache"},
		{"a directory on a volume that is named from here", func(o *Options) { o.Dirs, o.Volume = []string{o.Volume + "/models"}, "volume" }, "needs no cache"},
		{"an empty directory name", func(o *Options) { o.Dirs = []string{""} }, `"" is no path`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := r.options()
			tt.change(&opts)
			_, err := New(opts)
			require.ErrorContains(t, err, tt.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestNew_Directories(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(base, "real"), 0o755))
	require.NoError(t, os.Symlink("real", filepath.Join(base, "link")))
	c, err := New(Options{Volume: "/nowhere", Namespace: "n", Dirs: []string{base + "/link/later", base + "/real/later/inner", base + "/b", base + "/real/later2"}})
	require.NoError(t, err)
	require.Equal(t, []string{base + "/b", base + "/real/later", base + "/real/later2"}, c.dirs)
}

// A directory may be a link to what a cold start has yet to make.
func TestHydrate_DirectoryBehindALink(t *testing.T) {
	r := newRig(t)
	r.write("file", "f")
	r.sync()
	r.fresh()
	link, second := filepath.Join(r.base, "link"), filepath.Join(r.base, "second")
	require.NoError(t, os.Symlink("second", link))
	require.NoError(t, os.Symlink(r.dir(), second))
	report, err := r.cache(func(o *Options) { o.Dirs = []string{link} }).Hydrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Files)
	require.Equal(t, "f", read(t, filepath.Join(link, "file")))
}

// VC-06: no volume is no error of anybody's; a directory that is no mount is said.
func TestAvailable(t *testing.T) {
	r := newRig(t)
	var unmounted *NotMounted
	require.ErrorAs(t, r.cache(func(o *Options) { o.Volume = unmountedDir(t) }).Available(), &unmounted)

	absent := r.cache(func(o *Options) { o.Volume = filepath.Join(r.base, "none") })
	require.ErrorIs(t, absent.Available(), ErrNoVolume)
	_, err := absent.Hydrate(t.Context())
	require.ErrorIs(t, err, ErrNoVolume)
	r.write("a", "a")
	_, err = absent.Sync(t.Context())
	require.ErrorIs(t, err, ErrNoVolume)
	require.NoDirExists(t, absent.opts.Volume)

	if _, err := os.Stat("/dev/shm"); err == nil {
		require.NoError(t, r.cache(func(o *Options) { o.Volume = "/dev/shm" }).Available())
	}
}

// unmountedDir is a directory on the disk that "/" is on.
func unmountedDir(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/etc", "/usr", "/opt"} {
		if mounted(dir) != nil {
			return dir
		}
	}
	t.Skip("everything here is a mount of its own")
	return ""
}

func TestSync_WhatIsLeftOut(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{
		"x.lock", "x.incomplete", "x.part", "x.tmp", "x.rpvc.tmp", "x.crdownload", "m/.no_exist/rev/y", ".cache/huggingface/download/z.metadata",
	} {
		r.write(name, "unfinished")
	}
	r.write("kept", "k")
	r.write("m/refs/main", "rev")
	r.link("out", "/etc/hostname")
	r.link("nothing", "absent")
	require.NoError(t, mkfifo(filepath.Join(r.dir(), "pipe")))
	report := r.sync()
	require.Equal(t, 2, report.Files)
	require.ElementsMatch(t, []Skip{
		{filepath.Join(r.dir(), "out"), errOutside.Error()},
		{filepath.Join(r.dir(), "nothing"), errNothing.Error()},
		{filepath.Join(r.dir(), "pipe"), "neither a file nor a link"},
	}, report.Skipped)
	r.fresh()
	require.Equal(t, 2, r.hydrate().Files)
	require.Equal(t, map[string]string{"kept": "1 " + sumOf("k"), "m/refs/main": "3 " + sumOf("rev")}, contents(t, r.dir()))
}

// The hub's layout comes back as it was: blobs, links to them, names of revisions.
// What no reader of the manifest can find again is not written there, else each sync would copy it anew.
func TestSync_PathsThatDoNotComeBack(t *testing.T) {
	r := newRig(t)
	r.write("plain", "p")
	deep := r.dir()
	root, err := os.OpenRoot(r.dir())
	require.NoError(t, err)
	for len(deep) < maxPath {
		name := strings.Repeat("d", 200)
		deep = filepath.Join(deep, name)
		require.NoError(t, root.Mkdir(name, 0o755))
		inner, err := root.OpenRoot(name)
		require.NoError(t, err)
		require.NoError(t, root.Close())
		root = inner
	}
	require.NoError(t, root.WriteFile("small", []byte("s"), 0o644))
	require.NoError(t, root.WriteFile("big", []byte(large("b")), 0o644))
	require.NoError(t, root.Close())
	odd := filepath.Join(r.base, "odd\xff")
	require.NoError(t, os.Mkdir(odd, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(odd, "small"), []byte("s"), 0o644))

	c := r.cache(func(o *Options) { o.Dirs = append(o.Dirs, odd) })
	report, err := c.Sync(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Files)
	require.ElementsMatch(t, []Skip{
		{filepath.Join(deep, "small"), "a path that is too long"},
		{filepath.Join(deep, "big"), "a path that is too long"},
		{filepath.Join(odd, "small"), "a name that is not UTF-8"},
	}, report.Skipped)
	report, err = c.Sync(t.Context())
	require.NoError(t, err)
	require.Zero(t, report.Files, "nothing has changed")
	found, err := c.Verify(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, found.Problems)
}

func TestSync_HubLayout(t *testing.T) {
	r := newRig(t)
	r.write("hub/models--x/blobs/small", "config")
	r.write("hub/models--x/blobs/large", large("weights"))
	r.write("hub/models--x/refs/main", "rev")
	r.write("hub/models--x/refs/large", large("r"))
	r.link("hub/models--x/snapshots/rev/config.json", "../../blobs/small")
	r.link("hub/models--x/snapshots/rev/model.bin", filepath.Join(r.dir(), "hub/models--x/blobs/large"))
	r.link("hub/models--x/snapshots/latest", "rev")
	r.link("again", "hub/models--x/snapshots/latest/config.json")
	before := image(t, r.dir())
	require.Equal(t, 4, r.sync().Files)
	r.fresh()
	report := r.hydrate()
	require.Empty(t, report.Skipped)
	require.Equal(t, 4, report.Links)
	require.Equal(t, before, image(t, r.dir()))
	require.Equal(t, Report{Unchanged: 4}, untimed(r.sync()))
	require.Equal(t, Report{Unchanged: 4}, untimed(r.hydrate()))
}

func untimed(r Report) Report {
	r.Seconds = 0
	return r
}

func TestSync_WhatCountsAsChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(*rig)
		files  int
	}{
		{"nothing", func(*rig) {}, 0},
		{"the same length, a moment later", func(r *rig) { r.write("small", "SMALL") }, 1},
		{"a large one of the same length, a moment later", func(r *rig) { r.write("large", large("b")) }, 1},
		{"an older time", func(r *rig) { age(r.t, filepath.Join(r.dir(), "small"), time.Hour) }, 1},
		{"another mode", func(r *rig) { require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "small"), 0o600)) }, 0},
		{"deleted", func(r *rig) { require.NoError(r.t, os.Remove(filepath.Join(r.dir(), "small"))) }, 0},
		{"a large one deleted", func(r *rig) { require.NoError(r.t, os.Remove(filepath.Join(r.dir(), "large"))) }, 0},
		{"all deleted", func(r *rig) {
			require.NoError(r.t, os.RemoveAll(r.dir()))
			require.NoError(r.t, os.Mkdir(r.dir(), 0o755))
		}, 0},
		{"grown over the limit", func(r *rig) { r.write("small", large("s")) }, 1},
		{"shrunk below it", func(r *rig) { r.write("large", "l") }, 1},
		{"a new one", func(r *rig) { r.write("new", "n") }, 1},
		{"a new link", func(r *rig) { r.link("link", "small") }, 0},
		{"a copy lost from the mirror", func(r *rig) { require.NoError(r.t, os.Remove(r.mirror(bigName, r.dir(), "large"))) }, 1},
		{"a copy cut short in the mirror", func(r *rig) { require.NoError(r.t, os.Truncate(r.mirror(bigName, r.dir(), "large"), 100)) }, 1},
		{"the archive lost", func(r *rig) { require.NoError(r.t, os.Remove(r.mirror(archiveName))) }, 0},
		{"another archive", func(r *rig) { require.NoError(r.t, os.Truncate(r.mirror(archiveName), 100)) }, 0},
		{"the manifest lost", func(r *rig) { require.NoError(r.t, os.Remove(r.mirror(manifestName))) }, 3},
		{"a manifest of the future", func(r *rig) {
			require.NoError(r.t, os.WriteFile(r.mirror(manifestName), []byte(`{"version":2}`), 0o644))
		}, 3},
		{"a manifest that is none", func(r *rig) { require.NoError(r.t, os.WriteFile(r.mirror(manifestName), []byte(`[`), 0o644)) }, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write("small", "small")
			r.write("other", "other")
			r.write("large", large("a"))
			r.sync()
			tt.change(r)
			want := image(t, r.dir())
			require.Equal(t, tt.files, r.sync().Files)
			require.Equal(t, 0, r.sync().Files, "once is enough")
			require.NoError(t, os.RemoveAll(r.dir()))
			r.hydrate()
			if len(want) == 0 {
				require.NoFileExists(t, r.mirror(archiveName))
				return
			}
			require.Equal(t, want, image(t, r.dir()))
			found, err := r.cache().Verify(t.Context(), false)
			require.NoError(t, err)
			require.Empty(t, found.Problems)
		})
	}
}

// Only the process that has seen a file can tell that another one has its length and its time.
// A file that the mirror has no entry of may lie there all the same, and be another version of the same size and time.
func TestSync_AnotherVersionOfTheSameTime(t *testing.T) {
	r := newRig(t)
	when := time.Unix(1e9, 0)
	for _, content := range []string{large("a"), "", large("b")} {
		if content == "" {
			r.fresh()
			r.write("other", "o")
		} else {
			require.NoError(t, os.Chtimes(r.write("big", content), when, when))
		}
		r.sync()
	}
	found, err := r.cache().Verify(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, found.Problems)
	r.fresh()
	r.hydrate()
	require.Equal(t, large("b"), read(t, filepath.Join(r.dir(), "big")))
}

// The first moment of 1970 is a time like any other.
func TestSync_TimeZero(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{r.write("small", "s"), r.write("big", large("b"))} {
		require.NoError(t, os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)))
		r.sync()
		require.NoError(t, os.Chmod(path, 0o600))
	}
	require.Zero(t, r.sync().Files)
	want := image(t, r.dir())
	r.fresh()
	r.hydrate()
	require.Equal(t, want, image(t, r.dir()))
	require.Zero(t, r.hydrate().Files)
}

func TestSync_SameLengthAndTime(t *testing.T) {
	for name, content := range map[string]string{"small": "a", "large": large("a")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			path := r.write(name, content)
			c := r.cache()
			_, err := c.Sync(t.Context())
			require.NoError(t, err)
			info, err := os.Stat(path)
			require.NoError(t, err)
			r.write(name, strings.ToUpper(content))
			require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
			changed, err := c.Changed(t.Context())
			require.NoError(t, err)
			require.True(t, changed)
			report, err := c.Sync(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, report.Files)
			r.fresh()
			r.hydrate()
			require.Equal(t, strings.ToUpper(content), read(t, path))
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// A worker that has not made its folders yet must not empty the mirror.
func TestSync_NoDirectoryYet(t *testing.T) {
	r := newRig(t)
	r.write("a", "a")
	r.sync()
	r.fresh()
	require.Equal(t, Report{}, untimed(r.sync()))
	require.Equal(t, 1, r.hydrate().Files)
}

// While a sync waits for its lock, directories may be taken away.
func TestSync_DirectoryTakenAwayMeanwhile(t *testing.T) {
	r := newRig(t)
	r.write("old", "o")
	r.sync()
	before := read(t, r.mirror(manifestName))
	small, big := r.write("small", "s"), r.write("big", large("b"))
	other := filepath.Join(r.base, "other")

	for _, rest := range []bool{false, true} {
		c := r.cache(func(o *Options) { o.Dirs = append(o.Dirs, other) })
		r.write("small", "s")
		r.write("big", large("b"))
		p := &pulse{}
		found, m, err := c.look(t.Context(), p, c.openToWrite)
		require.NoError(t, err)
		t.Cleanup(m.close)
		r.fresh()
		if rest {
			require.NoError(t, os.Mkdir(other, 0o755))
		}
		var got result
		require.NoError(t, c.syncLocked(t.Context(), p, found, m, &got))
		if !rest {
			require.Equal(t, before, read(t, r.mirror(manifestName)), "the mirror is not emptied")
			continue
		}
		var paths []string
		for _, s := range found.skips.list {
			paths = append(paths, s.Path)
		}
		require.ElementsMatch(t, []string{small, big}, paths)
	}
}

func TestHydrate_WhatIsKept(t *testing.T) {
	tests := []struct {
		name  string
		local func(r *rig, path string)
		want  string // the content afterwards; the mirror has "mirror"
	}{
		{"nothing there", func(r *rig, path string) { require.NoError(r.t, os.Remove(path)) }, "mirror"},
		{"older", func(r *rig, path string) { r.write("f", "before"); age(r.t, path, time.Hour) }, "mirror"},
		{"older and longer", func(r *rig, path string) { r.write("f", "long before"); age(r.t, path, time.Hour) }, "mirror"},
		{"newer", func(r *rig, path string) { r.write("f", "newer!"); age(r.t, path, -time.Hour) }, "newer!"},
		{"newer and longer", func(r *rig, path string) { r.write("f", "much newer"); age(r.t, path, -time.Hour) }, "much newer"},
		{"a link", func(r *rig, path string) {
			require.NoError(r.t, os.Remove(path))
			r.write("g", "linked")
			r.link("f", "g")
		}, "linked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			path := r.write("f", "mirror")
			r.sync()
			tt.local(r, path)
			r.hydrate()
			require.Equal(t, tt.want, read(t, path))
		})
	}
}

func TestHydrate_FolderInTheWay(t *testing.T) {
	r := newRig(t)
	path := r.write("f", "mirror")
	big := r.write("g", large("g"))
	r.write("h", "h")
	r.sync()
	r.fresh()
	require.NoError(t, os.MkdirAll(filepath.Join(path, "inner"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(big, "inner"), 0o755))
	report := r.hydrate()
	require.Equal(t, 1, report.Files)
	require.Equal(t, 2, report.SkippedTotal)
	require.DirExists(t, filepath.Join(path, "inner"))
}

func TestChanged(t *testing.T) {
	r := newRig(t)
	r.write("a", "a")
	c := r.cache()
	changed := func() bool {
		t.Helper()
		is, err := c.Changed(t.Context())
		require.NoError(t, err)
		return is
	}
	require.True(t, changed(), "nothing was synced yet")
	_, err := c.Sync(t.Context())
	require.NoError(t, err)
	require.False(t, changed())
	r.write("b", large("b"))
	require.True(t, changed())
	_, err = c.Sync(t.Context())
	require.NoError(t, err)
	require.False(t, changed())
	r.write("b.lock", "")
	require.False(t, changed(), "locks come and go")
	r.link("l", "a")
	require.True(t, changed())
	r.fresh()
	_, err = c.Hydrate(t.Context())
	require.NoError(t, err)
	require.False(t, changed(), "what was restored was not changed")
}

func TestStatus(t *testing.T) {
	r := newRig(t)
	r.write("a", "a")
	r.write("b", large("b"))
	r.link("l", "a")
	status := func() Status {
		t.Helper()
		s, err := r.cache().Status(t.Context())
		require.NoError(t, err)
		return s
	}
	s := status()
	require.False(t, s.Present)
	require.Equal(t, 2, s.ToSync.Files)
	require.NoDirExists(t, r.mirror(), "who looks changes nothing")
	r.sync()
	s = status()
	require.True(t, s.Present)
	require.WithinDuration(t, time.Now(), s.Written, time.Minute)
	require.Equal(t, Count{1, 1}, s.Small)
	require.Equal(t, Count{1, int64(len(large("b")))}, s.Big)
	require.Equal(t, 1, s.Links)
	require.Zero(t, s.ToSync)
	require.Zero(t, s.ToHydrate)
	require.Nil(t, s.Writer)
	r.fresh()
	require.Equal(t, 2, status().ToHydrate.Files)
}

func TestVerify_RightLengthWrongBytes(t *testing.T) {
	r := newRig(t)
	r.write("small", strings.Repeat("s", 1000))
	r.write("small too", "fine")
	large := r.write("large", large("l"))
	r.sync()
	flip(t, r.mirror(bigName, large), 1000)
	flip(t, r.mirror(archiveName), fileOffset(t, r.mirror(archiveName), "ssss"))
	found, err := r.cache(func(o *Options) { o.Dirs = nil }).Verify(context.Background(), false)
	require.NoError(t, err)
	require.Equal(t, []Problem{
		{large, errOther.Error()},
		{filepath.Join(r.dir(), "small"), errDamaged.Error()},
	}, found.Problems)
	require.Equal(t, 1, found.Files)

	r.fresh()
	report := r.hydrate()
	require.Equal(t, 1, report.Files, "damaged files do not come back")
	require.Equal(t, 2, report.SkippedTotal)
	require.Len(t, contents(t, r.dir()), 1)
}

// What is no manifest in its place costs a copy of everything, not the cache.
func TestSync_OddManifests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		place func(path string) error
	}{
		{"a pipe", func(path string) error { return unix.Mkfifo(path, 0o644) }},
		{"a link that leads out", func(path string) error { return os.Symlink("/etc/passwd", path) }},
		{"an entry that makes no sense", func(path string) error {
			return os.WriteFile(path, []byte(`{"version":1,"threshold":262144,"small":[{"path":"/x","size":-1,"mtime":0}],"big":[]}`), 0o644)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write("small", "s")
			r.sync()
			require.NoError(t, os.Remove(r.mirror(manifestName)))
			require.NoError(t, tt.place(r.mirror(manifestName)))
			require.Zero(t, r.hydrate().Files)
			r.sync()
			found, err := r.cache().Verify(context.Background(), false)
			require.NoError(t, err)
			require.Zero(t, found.ProblemsTotal, found)
			require.Equal(t, 1, found.Files)
		})
	}
}

func TestDirs_AFileInThePlaceOfOne(t *testing.T) {
	r := newRig(t)
	r.write("small", "s")
	odd := filepath.Join(r.base, "odd")
	require.NoError(t, os.WriteFile(odd, nil, 0o644))
	both := func(o *Options) { o.Dirs = append(o.Dirs, odd) }
	report, err := r.cache(both).Sync(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Files)
	r.fresh()
	report, err = r.cache(both).Hydrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Files)
	require.Contains(t, r.log, "warn "+odd+" is no directory and is not cached")
}

// A program may take a directory that is there for one that is full.
func TestHydrate_MakesNoEmptyDirectory(t *testing.T) {
	r := newRig(t)
	r.write("small", "s")
	r.sync()
	r.fresh()
	other := filepath.Join(r.base, "other")
	report, err := r.cache(func(o *Options) { o.Dirs = append(o.Dirs, other) }).Hydrate(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Files)
	require.NoDirExists(t, other)
}

func TestNoMirror(t *testing.T) {
	r := newRig(t)
	_, err := r.cache().Verify(t.Context(), false)
	require.EqualError(t, err, "there is no mirror at "+r.mirror()+" yet")
	_, err = r.cache().Prune(t.Context(), true)
	require.EqualError(t, err, "there is no mirror at "+r.mirror()+" yet")
}

func TestVerify_AManifestThatCannotBeRead(t *testing.T) {
	r := newRig(t)
	r.write("small", "s")
	r.sync()
	require.NoError(t, os.Truncate(r.mirror(manifestName), 10))
	found, err := r.cache().Verify(context.Background(), false)
	require.NoError(t, err)
	require.Equal(t, 1, found.ProblemsTotal)
	require.Equal(t, manifestName, found.Problems[0].Path)

	require.NoError(t, os.Remove(r.mirror(manifestName)))
	found, err = r.cache().Verify(context.Background(), false)
	require.NoError(t, err)
	require.Zero(t, found.ProblemsTotal, "a mirror that nobody has written yet")
}

// flip changes a byte and nothing else that can be seen.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	data := []byte(read(t, path))
	data[at] ^= 1
	require.NoError(t, os.WriteFile(path, data, info.Mode().Perm()))
	require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
}

func fileOffset(t *testing.T, path, what string) int {
	t.Helper()
	at := strings.Index(read(t, path), what)
	require.Positive(t, at)
	return at
}

func TestPrune(t *testing.T) {
	r := newRig(t)
	keep := r.write("keep", large("k"))
	gone := r.write("folder/gone", large("g"))
	r.write("small", "s")
	r.sync()
	require.NoError(t, os.Remove(gone))
	r.sync()
	require.FileExists(t, r.mirror(bigName, gone), "a sync leaves it, since another writer's manifest may name it")
	temp := r.mirror(bigName, filepath.Dir(gone), "model.bin.12.34.rpvc.tmp")
	require.NoError(t, os.WriteFile(temp, []byte("torn"), 0o600))
	for _, path := range []string{r.mirror(bigName, gone), temp} { // files may claim to be of the future
		later := time.Now().AddDate(50, 0, 0)
		require.NoError(t, os.Chtimes(path, later, later))
	}

	c := r.cache()
	pruned, err := c.Prune(t.Context(), false)
	require.NoError(t, err)
	require.Empty(t, pruned.Files, "what is fresh stays")

	c.limits.temps = 0
	rel := func(path string) string { return strings.TrimPrefix(path, r.mirror()+"/") }
	want := []string{rel(r.mirror(bigName, gone)), rel(temp), rel(filepath.Dir(temp))}
	pruned, err = c.Prune(t.Context(), true)
	require.NoError(t, err)
	require.ElementsMatch(t, want, pruned.Files)
	require.FileExists(t, temp)
	pruned, err = c.Prune(t.Context(), false)
	require.NoError(t, err)
	require.ElementsMatch(t, want, pruned.Files)
	require.Equal(t, int64(len(large("g"))+4), pruned.Bytes)
	require.NoDirExists(t, filepath.Dir(temp))
	require.FileExists(t, r.mirror(bigName, keep))
	require.NoFileExists(t, r.mirror(lockName))

	require.NoError(t, os.Remove(r.mirror(manifestName)))
	_, err = c.Prune(t.Context(), false)
	require.ErrorContains(t, err, "no manifest")
	require.FileExists(t, r.mirror(bigName, keep))
}

// A worker that hydrates while another one replaces the mirror gets what is there then, and all of it.
func TestHydrate_MirrorIsReplacedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.write("same", "s")
	r.write("small", "before")
	r.write("large", large("before"))
	r.sync()
	older := r.mirror() + "-older"
	require.NoError(t, os.CopyFS(older, os.DirFS(r.mirror())))
	for _, name := range []string{manifestName, archiveName} { // which have to be those that were written together
		info, err := os.Stat(r.mirror(name))
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(filepath.Join(older, name), info.ModTime(), info.ModTime()))
	}
	r.write("small", "after")
	r.write("large", large("and after"))
	r.sync()
	want := image(t, r.dir())
	r.fresh()
	newer := r.mirror() + "-newer"
	require.NoError(t, os.Rename(r.mirror(), newer))
	require.NoError(t, os.Rename(older, r.mirror()))

	c := r.cache()
	looks := 0
	got, err := c.hydrate(t.Context(), &pulse{}, func() (*mirror, error) {
		m, err := c.openToRead()
		if looks++; looks == 1 {
			for _, name := range []string{filepath.Join(bigName, r.dir(), "large"), archiveName, manifestName} {
				require.NoError(t, os.Rename(filepath.Join(newer, name), r.mirror(name)))
			}
		}
		return m, err
	})
	require.NoError(t, err)
	require.Equal(t, 2, looks)
	require.Empty(t, got.report.Skipped)
	require.Equal(t, 3, got.report.Files)
	require.Zero(t, got.report.Unchanged)
	require.Equal(t, want, image(t, r.dir()))
}
