package volume

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const secret = "what nobody may read"

// trap is a mirror made by somebody who means harm, beside files that must stay as they are.
type trap struct {
	*rig
	canary string // a folder beside the directory
}

func newTrap(t testing.TB) *trap {
	t.Helper()
	r := &trap{rig: newRig(t)}
	r.canary = filepath.Join(r.base, "canary")
	require.NoError(t, os.MkdirAll(r.dir(), 0o755))
	require.NoError(t, os.MkdirAll(r.mirror(bigName), 0o755))
	require.NoError(t, os.Mkdir(r.canary, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(r.canary, "secret"), []byte(secret), 0o600))
	return r
}

// spring hydrates, whatever comes of it, and looks whether anything happened where nothing may.
func (r *trap) spring() Report {
	r.t.Helper()
	before := r.outside()
	report, _ := r.cache().Hydrate(r.t.Context())
	require.Equal(r.t, before, r.outside(), "something was written outside")
	for name, text := range contents(r.t, r.dir()) {
		require.NotContains(r.t, text, sumOf(secret), "%s was read outside", name)
	}
	return report
}

// outside is all but the directory.
func (r *trap) outside() map[string]string {
	all := image(r.t, r.base)
	for name := range all {
		if strings.HasPrefix(name, "data/") {
			delete(all, name)
		}
	}
	return all
}

func (r *trap) putManifest(text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(r.mirror(manifestName), []byte(text), 0o644))
}

func (r *trap) put(m manifest) {
	r.t.Helper()
	m.Version, m.Threshold = version, threshold
	text, err := json.Marshal(m)
	require.NoError(r.t, err)
	r.putManifest(string(text))
}

// member is how the manifest and the archive name a small file.
func (r *trap) entry(path, content string) entry {
	return entry{Path: path, Size: int64(len(content)), MTime: 1700000000}
}

func (r *trap) putArchive(headers ...tar.Header) {
	r.t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := h.Linkname // what a regular file holds is passed here
		if h.Typeflag == tar.TypeReg {
			h.Linkname, h.Size = "", int64(len(content))
		} else {
			content = ""
		}
		h.ModTime = time.Unix(1700000000, 0)
		require.NoError(r.t, w.WriteHeader(&h))
		_, err := w.Write([]byte(content))
		require.NoError(r.t, err)
	}
	require.NoError(r.t, w.Close())
	require.NoError(r.t, os.WriteFile(r.mirror(archiveName), b.Bytes(), 0o644))
}

func regular(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: content, Mode: 0o7777}
}

// VC-01: whatever a mirror holds, nothing is written outside the directories, nothing is read outside the mirror, and it ends.
func TestCrafted(t *testing.T) {
	tests := []struct {
		name  string
		build func(r *trap)
		want  []string // files that are there afterwards
	}{
		{"a way out in the manifest", func(r *trap) {
			path := r.dir() + "/../canary/x"
			r.put(manifest{Small: []entry{r.entry(path, "x")}, Big: []entry{r.entry(path, "x")}})
			r.putArchive(regular(path[1:], "x"))
		}, nil},
		{"a path outside", func(r *trap) {
			path := r.canary + "/x"
			r.put(manifest{Small: []entry{r.entry(path, "x")}, Big: []entry{r.entry("/etc/x", "x")}})
			r.putArchive(regular(path[1:], "x"))
		}, nil},
		{"a directory's name as the begin of another's", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"-more/x", "x")}})
			r.putArchive(regular(r.dir()[1:]+"-more/x", "x"))
		}, nil},
		{"the directory itself", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir(), "x")}})
			r.putArchive(regular(r.dir()[1:], "x"))
		}, nil},
		{"odd paths", func(r *trap) {
			var all []entry
			for _, path := range []string{"", "/", "relative", r.dir() + "/", r.dir() + "//x", r.dir() + "/./x", r.dir() + "/a\x00b", r.dir() + "/" + strings.Repeat("n", 300), r.dir() + strings.Repeat("/n", 3000)} {
				all = append(all, r.entry(path, "x"))
			}
			r.put(manifest{Small: all, Big: all, Refs: all})
		}, nil},
		{"odd sizes and times", func(r *trap) {
			var all []entry
			for i, size := range []int64{-1, math.MinInt64, math.MaxInt64, 1 << 50} {
				all = append(all, entry{Path: fmt.Sprint(r.dir(), "/", i), Size: size, MTime: 1}, entry{Path: fmt.Sprint(r.dir(), "/t", i), MTime: 1e300})
			}
			r.put(manifest{Small: all, Big: all})
		}, nil},
		{"members that are no files", func(r *trap) {
			var small []entry
			var headers []tar.Header
			for i, kind := range []byte{tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo, tar.TypeDir} {
				name := fmt.Sprint(r.dir(), "/", i)
				small = append(small, r.entry(name, ""))
				headers = append(headers, tar.Header{Typeflag: kind, Name: name[1:], Linkname: r.canary + "/secret", Devmajor: 1, Devminor: 5})
			}
			r.put(manifest{Small: small})
			r.putArchive(headers...)
		}, nil},
		{"a link, then a file through it", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/l", ""), r.entry(r.dir()+"/l/x", "x")}, Links: []link{{r.dir() + "/l", r.canary}}})
			r.putArchive(tar.Header{Typeflag: tar.TypeSymlink, Name: r.dir()[1:] + "/l", Linkname: r.canary}, regular(r.dir()[1:]+"/l/x", "x"))
		}, []string{"l/x"}},
		{"the same member many times", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", "12345"), r.entry(r.dir()+"/x", "12345")}})
			r.putArchive(regular(r.dir()[1:]+"/x", "longer than it should be"), regular(r.dir()[1:]+"/x", "right"), regular(r.dir()[1:]+"/x", "wrong"))
		}, []string{"x"}},
		{"members that the manifest does not name", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", "x")}})
			r.putArchive(regular(r.dir()[1:]+"/y", "y"), regular(r.dir()[1:]+"/x", "x"))
		}, []string{"x"}},
		{"a link that leads out", func(r *trap) {
			r.put(manifest{Links: []link{
				{r.dir() + "/a", r.canary + "/secret"},
				{r.dir() + "/b", "../canary/secret"},
				{r.dir() + "/c", "/"},
				{r.dir() + "/d", ""},
				{r.canary + "/e", r.dir()},
				{r.dir() + "/../canary/f", r.dir()},
				{r.dir() + "/g", "a\x00"},
				{r.dir() + "/h", "h"},
				{r.dir(), r.canary},
			}})
		}, nil},
		{"a link that leads out through a link that was there", func(r *trap) {
			require.NoError(r.t, os.Symlink(r.canary, filepath.Join(r.dir(), "planted")))
			r.put(manifest{Links: []link{{r.dir() + "/a", "planted/secret"}, {r.dir() + "/planted/b", r.dir()}}})
		}, []string{"planted"}},
		{"links that lead to one another", func(r *trap) {
			r.put(manifest{Links: []link{{r.dir() + "/a", "b"}, {r.dir() + "/b", "a"}}})
		}, nil},
		{"a link that was there, in the way of files", func(r *trap) {
			require.NoError(r.t, os.Symlink(r.canary, filepath.Join(r.dir(), "planted")))
			require.NoError(r.t, os.Symlink(r.canary+"/secret", filepath.Join(r.dir(), "file")))
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/planted/x", "x"), r.entry(r.dir()+"/file", "x")}, Big: []entry{r.entry(r.dir()+"/planted/y", "y")}})
			r.putArchive(regular(r.dir()[1:]+"/planted/x", "x"), regular(r.dir()[1:]+"/file", "x"))
			require.NoError(r.t, os.MkdirAll(r.mirror(bigName, r.dir(), "planted"), 0o755))
			require.NoError(r.t, os.WriteFile(r.mirror(bigName, r.dir(), "planted/y"), []byte("y"), 0o644))
		}, []string{"file", "planted"}},
		{"a large file that is a link", func(r *trap) {
			r.put(manifest{Big: []entry{r.entry(r.dir()+"/x", secret)}})
			require.NoError(r.t, os.MkdirAll(r.mirror(bigName, r.dir()), 0o755))
			require.NoError(r.t, os.Symlink(r.canary+"/secret", r.mirror(bigName, r.dir(), "x")))
		}, nil},
		{"a folder of large files that is a link", func(r *trap) {
			r.put(manifest{Big: []entry{r.entry(r.dir()+"/secret", secret)}})
			require.NoError(r.t, os.MkdirAll(r.mirror(bigName, filepath.Dir(r.dir())), 0o755))
			require.NoError(r.t, os.Symlink(r.canary, r.mirror(bigName, r.dir())))
		}, nil},
		{"the folder of all large files is a link", func(r *trap) {
			r.put(manifest{Big: []entry{r.entry(r.dir()+"/secret", secret)}})
			require.NoError(r.t, os.Remove(r.mirror(bigName)))
			require.NoError(r.t, os.MkdirAll(filepath.Join(r.canary, r.dir()), 0o755))
			require.NoError(r.t, os.WriteFile(filepath.Join(r.canary, r.dir(), "secret"), []byte(secret), 0o644))
			require.NoError(r.t, os.Symlink(r.canary, r.mirror(bigName)))
		}, nil},
		{"the mirror is a link", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", secret)}})
			r.putArchive(regular(r.dir()[1:]+"/x", secret))
			require.NoError(r.t, os.Rename(r.mirror(), r.canary+"/mirror"))
			require.NoError(r.t, os.Symlink(r.canary+"/mirror", r.mirror()))
		}, nil},
		{"the archive is a link", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", secret)}})
			r.putArchive(regular(r.dir()[1:]+"/x", secret))
			require.NoError(r.t, os.Rename(r.mirror(archiveName), r.canary+"/archive"))
			require.NoError(r.t, os.Symlink(r.canary+"/archive", r.mirror(archiveName)))
		}, nil},
		{"the manifest is a link", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", "x")}})
			r.putArchive(regular(r.dir()[1:]+"/x", "x"))
			require.NoError(r.t, os.Rename(r.mirror(manifestName), r.canary+"/manifest"))
			require.NoError(r.t, os.Symlink(r.canary+"/manifest", r.mirror(manifestName)))
		}, nil},
		{"a large file that is a pipe", func(r *trap) {
			r.put(manifest{Big: []entry{r.entry(r.dir()+"/x", "")}})
			require.NoError(r.t, os.MkdirAll(r.mirror(bigName, r.dir()), 0o755))
			require.NoError(r.t, mkfifo(r.mirror(bigName, r.dir(), "x")))
		}, nil},
		{"everything is a pipe", func(r *trap) {
			require.NoError(r.t, os.Remove(r.mirror(bigName)))
			for _, name := range []string{manifestName, archiveName, bigName} {
				require.NoError(r.t, mkfifo(r.mirror(name)))
			}
		}, nil},
		{"a manifest of a gigabyte", func(r *trap) {
			r.putManifest("{")
			require.NoError(r.t, os.Truncate(r.mirror(manifestName), 1<<30))
		}, nil},
		{"a manifest that is very deep", func(r *trap) {
			r.putManifest(`{"version":1,"small":` + strings.Repeat(`[`, 1e6) + strings.Repeat(`]`, 1e6) + `}`)
		}, nil},
		{"a manifest of other types", func(r *trap) { r.putManifest(`{"version":1,"small":{"path":1},"big":"no"}`) }, nil},
		{"an archive that is none", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", "x")}})
			require.NoError(r.t, os.WriteFile(r.mirror(archiveName), bytes.Repeat([]byte("no tar "), 1000), 0o644))
		}, nil},
		{"an archive that is cut off", func(r *trap) {
			r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", "x"), r.entry(r.dir()+"/y", strings.Repeat("y", 5000))}})
			r.putArchive(regular(r.dir()[1:]+"/x", "x"), regular(r.dir()[1:]+"/y", strings.Repeat("y", 5000)))
			require.NoError(r.t, os.Truncate(r.mirror(archiveName), 4000))
		}, []string{"x"}},
		{"a member with a hole of a terabyte", func(r *trap) {
			r.put(manifest{Small: []entry{{Path: r.dir() + "/x", Size: 1 << 40, MTime: 1700000000}}})
			require.NoError(r.t, os.WriteFile(r.mirror(archiveName), sparse(r.t, r.dir()[1:]+"/x", 1<<40), 0o644))
		}, nil},
		{"a member with a small hole", func(r *trap) {
			r.put(manifest{Small: []entry{{Path: r.dir() + "/x", Size: 1 << 20, MTime: 1700000000}}})
			require.NoError(r.t, os.WriteFile(r.mirror(archiveName), sparse(r.t, r.dir()[1:]+"/x", 1<<20), 0o644))
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newTrap(t)
			tt.build(r)
			r.spring()
			var got []string
			for name := range linkedOrNot(t, r.dir()) {
				got = append(got, name)
			}
			require.ElementsMatch(t, tt.want, got)
		})
	}
}

// linkedOrNot are the names of a tree.
func linkedOrNot(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := image(t, dir)
	for name, text := range all {
		require.NotContains(t, text, "-rws", "%s has bits that it must not have", name)
		all[name] = ""
	}
	return all
}

// sparse is an archive with one member that is nothing but a hole.
func sparse(t testing.TB, name string, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	record := fmt.Sprintf("1\n%d\n0\n", size) // one piece, at its end, of no bytes
	data := record + strings.Repeat("\x00", 512-len(record))
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "other", Size: int64(len(data)), ModTime: time.Unix(1700000000, 0), Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XXX.sparse.major": "1", "XXX.sparse.minor": "0", "XXX.sparse.name": name, "XXX.sparse.realsize": fmt.Sprint(size),
	}}))
	_, err := w.Write([]byte(data))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return bytes.ReplaceAll(b.Bytes(), []byte("XXX.sparse"), []byte("GNU.sparse")) // the writer refuses to write such
}

// Very many entries are read, and skipped one by one.
// A link by way of /proc would lead this process to the directory, and every other one somewhere else.
func TestCrafted_LinksOfAProcess(t *testing.T) {
	if _, err := os.Lstat("/proc/self/root"); err != nil {
		t.Skip("there is no /proc")
	}
	r := newRig(t)
	file := r.write("file", "f")
	t.Chdir(r.dir())
	m := manifest{Version: version, Threshold: threshold, Small: []entry{}, Big: []entry{}}
	for name, target := range map[string]string{"root": "/proc/self/root" + file, "cwd": "/proc/self/cwd/file", "thread": "/proc/thread-self/cwd"} {
		m.Links = append(m.Links, link{filepath.Join(r.dir(), name), target})
	}
	for n := range 40 {
		m.Links = append(m.Links, link{filepath.Join(r.dir(), fmt.Sprint("fd", n)), fmt.Sprint("/dev/fd/", n)})
	}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(r.mirror(), 0o755))
	require.NoError(t, os.WriteFile(r.mirror(manifestName), text, 0o600))
	report := r.hydrate()
	require.Zero(t, report.Links, "%v", image(t, r.dir()))
	require.Equal(t, len(m.Links), report.SkippedTotal)
}

func TestCrafted_ManyEntries(t *testing.T) {
	const entries = 100_000
	r := newTrap(t)
	var b strings.Builder
	b.WriteString(`{"version":1,"small":[`)
	for i := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"path":"%s/%d","size":1,"mtime":1}`, r.dir(), i)
	}
	b.WriteString(`],"big":[]}`)
	r.putManifest(b.String())
	r.putArchive(regular(r.dir()[1:]+"/1", "x"))
	report := r.spring()
	require.Equal(t, entries, report.SkippedTotal)
	require.Len(t, report.Skipped, maxSkips)
}

// here puts the directory of this test into a text.
func (r *trap) here(text string) string { return strings.ReplaceAll(text, "DIR", r.dir()) }
