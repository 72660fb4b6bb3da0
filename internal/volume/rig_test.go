package volume

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const namespace = "ep"

// rig is a volume and the directories of workers that share it.
type rig struct {
	t      testing.TB
	base   string
	volume string

	mu  sync.Mutex
	log []string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, base: t.TempDir()}
	r.volume = filepath.Join(r.base, "volume")
	require.NoError(t, os.Mkdir(r.volume, 0o755))
	return r
}

// dir is where the files of all workers lie. They have one after another: paths are part of the mirror.
func (r *rig) dir() string { return filepath.Join(r.base, "data") }

func (r *rig) mirror(name ...string) string {
	return filepath.Join(append([]string{r.volume, ".cache", namespace}, name...)...)
}

func (r *rig) options() Options {
	return Options{
		Volume: r.volume, Namespace: namespace, Dirs: []string{r.dir()},
		Log: func(level, text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.log = append(r.log, level+" "+text)
		},
	}
}

func (r *rig) cache(change ...func(*Options)) *Cache {
	r.t.Helper()
	opts := r.options()
	for _, f := range change {
		f(&opts)
	}
	c, err := New(opts)
	require.NoError(r.t, err)
	return c
}

func (r *rig) sync() Report {
	r.t.Helper()
	report, err := r.cache().Sync(r.t.Context())
	require.NoError(r.t, err)
	return report
}

func (r *rig) hydrate() Report {
	r.t.Helper()
	report, err := r.cache().Hydrate(r.t.Context())
	require.NoError(r.t, err)
	return report
}

// write makes a file, and the folders on its way.
func (r *rig) write(name, content string) string {
	r.t.Helper()
	path := filepath.Join(r.dir(), name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func (r *rig) link(name, target string) {
	r.t.Helper()
	path := filepath.Join(r.dir(), name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(r.t, os.Symlink(target, path))
}

// fresh takes the directories away, as a new container has none.
func (r *rig) fresh() {
	r.t.Helper()
	require.NoError(r.t, os.RemoveAll(r.dir()))
}

// large is a content that does not go into the archive.
func large(seed string) string { return strings.Repeat(seed, 2*threshold/len(seed)) }

// image is all that can be seen of a tree: content, links, modes, times.
func image(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			all[rel] = "-> " + target
			return err
		}
		if !info.Mode().IsRegular() {
			all[rel] = "special 0 " + info.Mode().String()
			return nil
		}
		if info.Size() > maxManifest {
			all[rel] = fmt.Sprint("huge 0 ", info.Size())
			return nil
		}
		data, err := os.ReadFile(path)
		all[rel] = fmt.Sprint(info.Mode(), " ", info.ModTime().UnixMilli(), " ", len(data), " ", sumOf(string(data)))
		return err
	})
	require.NoError(t, err)
	return all
}

// contents are the files of a tree.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := image(t, dir)
	for name, text := range all {
		if !strings.HasPrefix(text, "->") {
			fields := strings.Fields(text)
			all[name] = strings.Join(fields[2:], " ")
		}
	}
	return all
}

// class is a process with the official Python class.
type class struct {
	once sync.Once
	err  error
	mu   sync.Mutex
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

var official class

func (c *class) start(python string) {
	c.cmd = exec.CommandContext(context.Background(), python, "testdata/volumecache.py")
	c.cmd.Stderr = os.Stderr
	c.cmd.Env = append(os.Environ(), "RUNPOD_DEBUG_LEVEL=WARN")
	if c.in, c.err = c.cmd.StdinPipe(); c.err != nil {
		return
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		c.err = err
		return
	}
	c.out = bufio.NewReader(out)
	if c.err = c.cmd.Start(); c.err == nil {
		_, c.err = c.out.ReadString('\n')
	}
}

func (c *class) close() error {
	if c.cmd == nil || c.cmd.Process == nil {
		return nil
	}
	_ = c.in.Close()
	return c.cmd.Wait()
}

// python has the official class hydrate or sync, and returns how many files it says that it has copied.
func (r *rig) python(do string) int {
	r.t.Helper()
	python := os.Getenv("RUNPODCTL_TEST_PYTHON")
	if python == "" {
		if os.Getenv("CI") == "true" {
			r.t.Fatal("RUNPODCTL_TEST_PYTHON must name a Python with the runpod package")
		}
		r.t.Skip("RUNPODCTL_TEST_PYTHON names no Python with the runpod package")
	}
	official.once.Do(func() { official.start(python) })
	require.NoError(r.t, official.err)
	official.mu.Lock()
	defer official.mu.Unlock()
	request, err := json.Marshal(map[string]any{"do": do, "dirs": []string{r.dir()}, "namespace": namespace, "volume": r.volume})
	require.NoError(r.t, err)
	_, err = official.in.Write(append(request, '\n'))
	require.NoError(r.t, err)
	answer, err := official.out.ReadBytes('\n')
	require.NoError(r.t, err)
	var done struct{ Files int }
	require.NoError(r.t, json.Unmarshal(answer, &done))
	return done.Files
}

// startChild starts a process of its own that syncs.
func startChild(t *testing.T, job childJob) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	text, err := json.Marshal(job)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// limitFiles makes writes beyond a size fail, as on a disk that is full.
func limitFiles(size uint64) {
	if size == 0 {
		return
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}); err != nil {
		panic(err)
	}
}

// limitOpen makes a process have too many files open.
func limitOpen(files uint64) {
	if files == 0 {
		return
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}); err != nil {
		panic(err)
	}
}

// refresh gives the files of a directory another content of the same length.
func refresh(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Repeat(string(rune('a'+rand.N(26))), int(info.Size()))), 0o644)
	})
}

// age makes a file old, as far as a file system lets one: its content and its name were changed now.
func age(t testing.TB, path string, by time.Duration) {
	t.Helper()
	when := time.Now().Add(-by)
	require.NoError(t, os.Chtimes(path, when, when))
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
