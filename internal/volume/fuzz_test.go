package volume

import (
	"os"
	"testing"
	"unicode/utf8"
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

// FuzzArchive hydrates from a mirror with any archive. The manifest wants what the seeds have.
func FuzzArchive(f *testing.F) {
	r := newTrap(f)
	r.putArchive(regular("DIR/x", "x"), regular("DIR/../canary/x", "x"), regular("DIR/y", "yyyy"))
	seed, err := os.ReadFile(r.mirror(archiveName))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(sparse(f, "DIR/y", 4))
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		r := newTrap(t)
		r.put(manifest{Small: []entry{r.entry(r.dir()+"/x", "x"), r.entry(r.dir()+"/y", "yyyy"), r.entry(r.canary+"/x", "x")}})
		if err := os.WriteFile(r.mirror(archiveName), archive, 0o644); err != nil {
			t.Fatal(err)
		}
		r.spring()
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
