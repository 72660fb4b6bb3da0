package volume

import (
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sumOf(content string) string { return sumText(crc32.Checksum([]byte(content), castagnoli())) }

// fill makes a tree with something of everything that the Python class mirrors too.
func (r *rig) fill() {
	r.t.Helper()
	for name, content := range map[string]string{
		"a.txt":                      "a",
		"empty":                      "",
		"with a space, an é and a\n": "odd",
		"deep/er/" + strings.Repeat("long-name/", 20) + strings.Repeat("n", 200): "a path that needs a header of its own",
		"just small":   strings.Repeat("s", threshold-1),
		"just big":     strings.Repeat("b", threshold),
		"weights.bin":  large("0123456789"),
		"deep/weights": large("weights"),
	} {
		r.write(name, content)
	}
	for name := range image(r.t, r.dir()) { // in the middle of a millisecond, since the Python class restores times through a float
		when := time.Now().Truncate(time.Millisecond).Add(time.Millisecond / 2)
		require.NoError(r.t, os.Chtimes(filepath.Join(r.dir(), name), when, when))
	}
	require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "a.txt"), 0o750))
	require.NoError(r.t, os.Chmod(filepath.Join(r.dir(), "weights.bin"), 0o600))
	when := time.Unix(1700000000, 123456789)
	require.NoError(r.t, os.Chtimes(filepath.Join(r.dir(), "a.txt"), when, when))
	old := time.Unix(1, 5000)
	require.NoError(r.t, os.Chtimes(filepath.Join(r.dir(), "deep/weights"), old, old))
}

// A mirror written by either side is restored by either side, and nothing is copied a second time.
func TestInterop(t *testing.T) {
	sides := map[string]struct{ sync, hydrate func(*rig) int }{
		"Go":     {func(r *rig) int { return r.sync().Files }, func(r *rig) int { return r.hydrate().Files }},
		"Python": {func(r *rig) int { return r.python("sync") }, func(r *rig) int { return r.python("hydrate") }},
	}
	for writer, w := range sides {
		for reader, rd := range sides {
			t.Run(writer+" to "+reader, func(t *testing.T) {
				r := newRig(t)
				r.fill()
				if writer == "Python" { // its list for tar has one name per line
					require.NoError(t, os.Remove(filepath.Join(r.dir(), "with a space, an é and a\n")))
				}
				before := image(t, r.dir())
				require.Equal(t, len(before), w.sync(r))
				require.Zero(t, w.sync(r), "a second sync of the same side")
				require.Zero(t, rd.sync(r), "a sync of the other side")
				require.Zero(t, rd.hydrate(r), "everything is there")

				r.fresh()
				require.Equal(t, len(before), rd.hydrate(r))
				if writer == "Python" { // tar keeps seconds
					require.Equal(t, contents(t, r.dir()), contentsOf(before))
				} else {
					require.Equal(t, before, image(t, r.dir()))
				}
				for name, side := range sides {
					require.Zero(t, side.hydrate(r), "a second hydrate by %s", name)
					require.Zero(t, side.sync(r), "a sync of what was hydrated, by %s", name)
				}
			})
		}
	}
}

func contentsOf(image map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range image {
		all[name] = strings.Join(strings.Fields(text)[2:], " ")
	}
	return all
}

// Workers with either side take turns on one namespace.
func TestInterop_Turns(t *testing.T) {
	r := newRig(t)
	r.write("small", "0")
	r.write("large", large("0"))
	r.write("models--x/refs/main", "rev")
	r.write("models--x/blobs/b", "blob")
	r.link("models--x/snapshots/rev/config.json", "../../blobs/b")
	for turn, content := range []string{"1", "22", "333", "4444"} {
		r.write("small", content)
		r.write("large", large(content)+content) // the Python class looks at the size only, if little time has passed
		want := contents(t, r.dir())
		if turn%2 == 0 {
			r.sync()
			r.fresh()
			r.python("hydrate")
			delete(want, "models--x/snapshots/rev/config.json") // it knows no links
		} else {
			r.python("sync")
			r.fresh()
			r.hydrate()
			delete(want, "models--x/snapshots/rev/config.json")
			delete(want, "models--x/refs/main")
		}
		require.Equal(t, want, contents(t, r.dir()))
		r.write("models--x/refs/main", "rev")
		r.link("models--x/snapshots/rev/config.json", "../../blobs/b")
	}
}

// The archive is one for GNU tar too.
func TestInterop_Tar(t *testing.T) {
	tar, err := exec.LookPath("tar")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no tar in PATH")
		}
		t.Skip("no tar in PATH")
	}
	r := newRig(t)
	r.fill()
	r.sync()
	to := t.TempDir()
	out, err := exec.CommandContext(t.Context(), tar, "-C", to, "-xf", r.mirror(archiveName)).CombinedOutput()
	require.NoError(t, err, string(out))
	want := image(t, r.dir())
	for _, big := range []string{"just big", "weights.bin", "deep/weights"} {
		delete(want, big)
	}
	require.Equal(t, want, image(t, filepath.Join(to, r.dir())))
}
