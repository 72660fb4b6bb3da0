package test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// store is a volume that outlives its workers, and the directory that each of them has to itself.
type store struct {
	t              *testing.T
	volume, models string
	manifest       string
}

func newStore(t *testing.T) store {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	s := store{t: t, volume: filepath.Join(root, "volume"), models: filepath.Join(root, "models")}
	s.manifest = filepath.Join(s.volume, ".cache/ep/manifest.json")
	require.NoError(t, os.Mkdir(s.volume, 0o700))
	return s
}

// fresh is the disk of the next worker.
func (s store) fresh() {
	s.t.Helper()
	require.NoError(s.t, os.RemoveAll(s.models))
	require.NoError(s.t, os.Mkdir(s.models, 0o700))
}

// worker starts one that keeps its models on the volume.
func (s store) worker(env []string, flags ...string) *worker {
	s.t.Helper()
	flags = append([]string{"--cache-dir", s.models, "--cache-volume", s.volume}, flags...)
	return runWorker(s.t, apidouble.New(s.t), "warm.py", append(env, "MODELS="+s.models), flags...)
}

// warmth is the output of a job of warm.py.
type warmth struct {
	Found map[string]string // file → sum, before the model was loaded
	Link  string
	Now   map[string]string
}

func (s store) ask(w *worker, id, input string) warmth {
	s.t.Helper()
	w.Offer(`{"id":"` + id + `","input":` + input + `}`)
	got := w.result(s.t, id)
	require.Empty(s.t, string(got.Error), w.stderr)
	return decode[warmth](s.t, got.Output)
}

func (s store) stop(w *worker) {
	s.t.Helper()
	w.signal(s.t, syscall.SIGTERM)
	require.Zero(s.t, w.wait(s.t), w.stderr)
}

// verify has the mirror read from end to end.
func (s store) verify() {
	s.t.Helper()
	p := runToEnd(s.t, command{args: []string{binary(s.t), "cache", "verify", "--volume", s.volume, "--namespace", "ep"}})
	require.Zero(s.t, p.wait(s.t), "%s%s", p.stdout, p.stderr)
}

func (w *worker) logs(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(w.stderr.String(), text) || !w.alive() }, "no line %q", text)
	require.Contains(t, w.stderr.String(), text)
}

// What one worker has downloaded the next one finds, whatever its program is spoken to through.
func TestRunOfAWarmWorker(t *testing.T) {
	t.Parallel()
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.fresh()
			cold := s.worker(nil, door...)
			before := s.ask(cold, "cold", `{}`)
			require.Empty(t, before.Found)
			require.Contains(t, cold.stderr.String(), "VolumeCache: hydrated 0 file(s) from "+filepath.Dir(s.manifest))
			cold.logs(t, "VolumeCache: synced 2 file(s) to "+filepath.Dir(s.manifest))
			s.stop(cold)
			s.verify()

			s.fresh()
			warm := s.worker(nil, door...)
			after := s.ask(warm, "warm", `{}`)
			require.Contains(t, warm.stderr.String(), "VolumeCache: hydrated 2 file(s) from "+filepath.Dir(s.manifest))
			require.Equal(t, "../../blobs/abc", after.Link)
			delete(before.Now, "interrupted.incomplete")
			require.Equal(t, before.Now, after.Found)
			s.stop(warm)
			require.NotContains(t, warm.stderr.String(), "VolumeCache: synced", "nothing has changed")
		})
	}
}

// What a job has made is mirrored soon, without a signal; what the last one has made is mirrored at the end.
func TestRunMirrorsWhatJobsMake(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.fresh()
	w := s.worker(nil)
	s.ask(w, "first", `{"learn":"style"}`)
	eventually(t, func() bool {
		text, err := os.ReadFile(s.manifest)
		return err == nil && strings.Contains(string(text), "/style")
	}, "not mirrored")
	s.ask(w, "second", `{"learn":"another"}`)
	s.stop(w)

	s.fresh()
	next := s.worker(nil)
	found := s.ask(next, "third", `{}`).Found
	require.Contains(t, found, "style")
	require.Contains(t, found, "another")
	s.stop(next)
}

// A worker that is killed while it syncs leaves a mirror that holds all of something or nothing of it.
func TestRunKilledWhileItSyncs(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.fresh()
	size := "SIZE=200000000"
	w := s.worker([]string{size})
	eventually(t, func() bool { return beingWritten(s.volume) || exists(s.manifest) }, "no sync")
	w.signal(t, syscall.SIGKILL)
	<-w.gone
	whole := exists(s.manifest)
	s.verify()

	s.fresh()
	next := s.worker([]string{size})
	got := s.ask(next, "next", `{}`)
	require.Equal(t, whole, got.Found["blobs/abc"] != "")
	if !whole {
		next.logs(t, "VolumeCache: synced")
	}
	s.stop(next)
	s.verify()

	s.fresh()
	last := s.worker([]string{size})
	require.Equal(t, got.Now["blobs/abc"], s.ask(last, "last", `{}`).Found["blobs/abc"])
	s.stop(last)
}

// beingWritten tells whether there is a copy in a directory that has no name yet.
func beingWritten(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		found = found || strings.HasSuffix(path, ".rpvc.tmp")
		return nil
	})
	return found
}

// A worker that is stopped while it hydrates leaves at once, and leaves nothing that is not whole.
func TestRunStoppedWhileItHydrates(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.fresh()
	const size = 4 << 30
	slow := filepath.Join(s.volume, ".cache/ep/big", s.models, "weights")
	require.NoError(t, os.MkdirAll(filepath.Dir(slow), 0o700))
	require.NoError(t, os.WriteFile(slow, nil, 0o600))
	require.NoError(t, os.Truncate(slow, size)) // which has no bytes on the disk, and yet has to be read
	require.NoError(t, os.WriteFile(s.manifest, fmt.Appendf(nil,
		`{"version":1,"threshold":262144,"small":[],"big":[{"path":"%s/weights","size":%d,"mtime":1}]}`, s.models, size), 0o600))

	w := s.worker(nil)
	eventually(t, func() bool { return beingWritten(s.models) || !w.alive() }, "no hydrate")
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
	left, err := os.ReadDir(s.models)
	require.NoError(t, err)
	require.Empty(t, left, w.stderr)
	require.NotContains(t, w.stderr.String(), "Ready for jobs")
	require.FileExists(t, s.manifest)
}

// A volume that cannot be used costs one warning, and no job.
func TestRunWithAVolumeThatFails(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s store) error{
		"a file in the place of the mirrors": func(s store) error { return os.WriteFile(filepath.Join(s.volume, ".cache"), nil, 0o600) },
		"a link in the place of the mirrors": func(s store) error { return os.Symlink(s.models, filepath.Join(s.volume, ".cache")) },
		"a mount that cannot be looked at": func(s store) error {
			return errors.Join(os.Remove(s.volume), os.Symlink("volume", s.volume))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.fresh()
			require.NoError(t, spoil(s))
			w := s.worker(nil)
			require.Empty(t, s.ask(w, "j1", `{"learn":"style"}`).Found)
			s.stop(w)
			require.Equal(t, 1, strings.Count(w.stderr.String(), "VolumeCache"), w.stderr)
			require.Contains(t, w.stderr.String(), "not everything could be hydrated")
			require.NoDirExists(t, filepath.Join(s.models, "ep"))
		})
	}
}

// The mirror is the one of the official class, both ways: whoever has written it, everybody reads it, and adds to it.
func TestRunsMirrorIsTheOfficialOne(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	official, own := []string{"--no-shim", "--", python(t), "-u", handler(t, "warm.py")}, []string{"--", python(t), "-u", handler(t, "warm.py")}
	bare := []string{"--", "python3", "-u", handler(t, "warm.py")} // which need not have the package
	flags := append([]string{"--cache-dir", s.models, "--cache-volume", s.volume}, own...)
	inHandler := []string{"MODELS=" + s.models, "VOLUME=" + s.volume}
	before := map[string]string{}
	for i, turn := range []struct {
		name string
		args []string
		env  []string
		ours bool // it is our engine that writes, which knows of links
	}{
		{"VolumeCache without the package", bare, inHandler, true},
		{"the package's own", official, inHandler, false},
		{"run --cache-dir", flags, inHandler[:1], true},
		{"the package's own, after run --cache-dir", official, inHandler, false},
		{"VolumeCache beside the package", own, inHandler, true},
		{"run --cache-dir, after VolumeCache", flags, inHandler[:1], true},
	} {
		s.fresh()
		w := runCommand(t, apidouble.New(t), turn.env, turn.args...)
		name := "file-" + string(rune('a'+i))
		got := s.ask(w, name, `{"learn":"`+name+`"}`)
		for file, sum := range before {
			require.Equal(t, sum, got.Found[file], "%s finds %s", turn.name, file)
		}
		require.Equal(t, "../../blobs/abc", got.Link, turn.name)
		s.stop(w)
		before = got.Now
		for file := range before { // these the package leaves out, and what is made after its sync
			if strings.HasSuffix(file, ".incomplete") || strings.HasPrefix(file, "snapshots/") || strings.HasPrefix(file, "refs/") || file == name {
				delete(before, file)
			}
		}
		s.verify()
		text, err := os.ReadFile(s.manifest)
		require.NoError(t, err)
		require.Equal(t, turn.ours, strings.Contains(string(text), `"links":`), "%s: %s", turn.name, text)
	}
}

// Whatever directories a handler names, VolumeCache brings back what the class of the package does.
func TestVolumeCacheOfOddDirectories(t *testing.T) {
	t.Parallel()
	work := func(flags ...string) *worker {
		root, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		args := append(flags, "--", python(t), "-u", handler(t, "odd_dirs.py"))
		return runCommand(t, apidouble.New(t), []string{"ROOT=" + root}, args...)
	}
	official, ours := work("--no-shim"), work()
	for id, dirs := range map[string]string{
		"one": `"d"`, "list": `["d"]`, "none": `[]`, "here": `""`, "missing": `["gone"]`, "one-of-two": `["gone","d"]`, "twice": `["d","d"]`,
		"slash": `"d/"`, "dots": `["d/../d"]`, "nested": `["d","d/in"]`, "nested-first": `["d/in","d"]`, "link": `"link"`, "link-to-nothing": `"dangling"`,
		"file": `"file"`, "file-and-folder": `["file","d"]`, "two-lines": `"new\nline"`, "odd-list": `["d",3]`,
	} {
		job := `{"id":"` + id + `","input":{"dirs":` + dirs + `}}`
		official.Offer(job)
		ours.Offer(job)
		want, got := official.result(t, id), ours.result(t, id)
		if len(want.Error) > 0 {
			require.Contains(t, string(want.Error), "TypeError")
			require.Contains(t, string(got.Error), "TypeError", dirs)
			continue
		}
		require.Empty(t, string(got.Error), dirs)
		require.JSONEq(t, string(want.Output), string(got.Output), dirs)
	}
}
