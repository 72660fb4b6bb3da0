package volume

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzManifest hydrates from a mirror with any manifest.
func FuzzManifest(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `{"version":1,"threshold":262144,"small":[{"path":"DIR/x","size":1,"mtime":1700000000}],"big":[]}`,
		`{"version":1,"small":[],"big":[{"path":"DIR/b","size":3,"mtime":1.5,"mtime_ns":1500000000,"mode":511,"crc32c":"00000000"}]}`,
		`{"version":1,"small":[{"path":"DIR/../canary/x","size":1,"mtime":1700000000}],"links":[{"path":"DIR/l","target":"../canary"}]}`,
		`{"version":1,"refs":[{"path":"DIR/refs/main","size":-1,"mtime":-1e300}],"archive":{"size":-5}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := newTrap(t)
		r.putArchive(regular(r.dir()[1:]+"/x", "x"), regular(r.canary[1:]+"/x", "x"))
		if err := os.MkdirAll(r.mirror(bigName, r.dir()), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.mirror(bigName, r.dir(), "b"), []byte("big"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.putManifest(r.here(text))
		r.spring()
	})
}

// FuzzDecode: what is read the fast way is what encoding/json makes of it.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"version":1,"threshold":262144,"small":[],"big":[]}`, `{"version":1.0}`, `{"version":01}`, `{"version":1}x`, `{"version":1,}`,
		`{"version": 1, "small": [{"path": "/d\u00e4/\ud83d\ude00", "size": 3, "mtime": 1700000000.1234567}, {"path": "/d/x\"", "size": -0}]}`,
		"{\"small\":[{\"path\":\"/\xff\u2028\x00\",\"mode\":4294967296,\"uid\":-1,\"mtime\":1e400}]}", `{"small":[{"size":1}],"small":[{}]}`,
		`{"refs":[{"mtime":-1.5e3,"mtime_ns":9223372036854775807,"crc32c":"00"}],"links":[{"path":"a","target":"b"}],"archive":{"size":1,"mtime_ns":2}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := decodeManifest(text)
		if !ok {
			return
		}
		want := &manifest{}
		require.NoError(t, json.Unmarshal(text, want))
		require.Equal(t, want, got)
	})
}

// FuzzArchive: what comes out of any archive is what the manifest says, each file once, and the others are missing.
func FuzzArchive(f *testing.F) {
	r := newTrap(f)
	r.putArchive(regular("d/x", "x"), regular("d/../canary/x", "x"), regular("d/y", "yyyy"))
	seed, err := os.ReadFile(r.mirror(archiveName))
	require.NoError(f, err)
	f.Add(seed)
	f.Add(sparse(f, "d/y", 4))
	f.Add([]byte("no archive"))
	summed := r.entry("/d/y", "yyyy")
	summed.CRC32C = sumOf("yyyy")
	f.Fuzz(func(t *testing.T, archive []byte) {
		wanted := map[string]entry{"/d/x": r.entry("/d/x", "x"), "/d/y": summed}
		left := maps.Clone(wanted)
		u := newUnpacker(&pulse{}, bytes.NewReader(archive), int64(len(archive)), wanted)
		for m := (member{}); u.next(t.Context(), &m); {
			require.Contains(t, left, m.Path)
			require.Len(t, m.data, int(left[m.Path].Size))
			if m.CRC32C != "" {
				require.Equal(t, m.CRC32C, sumOf(string(m.data)))
			}
			delete(left, m.Path)
		}
		u.missing(func(path, reason string) {
			require.Contains(t, left, path)
			require.NotEmpty(t, reason)
			delete(left, path)
		})
		require.Empty(t, left)
		require.False(t, u.failed(), "memory can always be read: %v", u.end)
	})
}

// FuzzPath: what counts as a path of a directory is one, and is the same for everybody.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/a/b", "/a/../b", "a", "/a/", "/a//b", "/a\x00", "/data/x", "/data/../x"} {
		f.Add(seed)
	}
	c := &Cache{dirs: []string{"/data"}}
	f.Fuzz(func(t *testing.T, path string) {
		if sane(path) != nil {
			return
		}
		_, rel, ok := c.locate(path)
		if ok && (!utf8.ValidString(rel) || "/data/"+rel != path) {
			t.Fatalf("%q lies at %q", path, rel)
		}
	})
}
