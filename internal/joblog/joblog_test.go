package joblog

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "logs")
	d := open(t, path)
	var out bytes.Buffer
	_, err := d.Copy(&out, "j1", 0)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, d.Append("j1", []byte("one\n")))
	require.NoError(t, d.Append("j2", []byte("other\n")))
	end, err := d.Copy(&out, "j1", 0)
	require.NoError(t, err)
	grown := d.Grown()
	require.NoError(t, d.Append("j1", []byte("two\n")))
	<-grown
	_, err = d.Copy(&out, "j1", end)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", out.String())

	info, err := os.Stat(filepath.Join(path, "j1.jsonl"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
}

func TestOpen_WhereThereCanBeNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(file)
	require.Error(t, err)
}

// hostile are ids that a handler can make up.
var hostile = map[string]string{
	"a path upwards":       "../../outside",
	"an absolute path":     "/outside",
	"the directory":        ".",
	"the one above":        "..",
	"a NUL":                "a\x00b",
	"a line":               "a\nb",
	"no text":              "\xff\xfe",
	"a backslash":          `..\outside`,
	"a long one":           strings.Repeat("x", 5000),
	"another long one":     strings.Repeat("x", 5000) + "y",
	"one that looks clean": "..%2F..%2Foutside",
	"nothing":              "",
}

// Each id has a file of its own, in the directory.
func TestDir_HostileIDs(t *testing.T) {
	above := t.TempDir()
	d := open(t, filepath.Join(above, "logs"))
	for _, id := range hostile {
		require.NoError(t, d.Append(id, []byte(id)))
	}
	for name, id := range hostile {
		var out bytes.Buffer
		_, err := d.Copy(&out, id, 0)
		require.NoError(t, err, name)
		require.Equal(t, id, out.String(), name)
	}
	entries, err := os.ReadDir(filepath.Join(above, "logs"))
	require.NoError(t, err)
	require.Len(t, entries, len(hostile))
	entries, err = os.ReadDir(above)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// What somebody else has put into the directory leads nowhere.
func TestDir_ForeignEntries(t *testing.T) {
	path, outside := t.TempDir(), filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(path, "link.jsonl")))
	require.NoError(t, os.Mkdir(filepath.Join(path, "folder.jsonl"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(path, "pipe.jsonl"), 0o600))
	d := open(t, path)
	for _, id := range []string{"link", "folder", "pipe"} {
		require.Error(t, d.Append(id, []byte("line\n")), id)
		_, err := d.Copy(new(bytes.Buffer), id, 0)
		require.Error(t, err, id)
	}
	text, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, "secret", string(text))
}

// Readers beside many writers see whole lines, each once.
func TestDir_WholeLines(t *testing.T) {
	const writers, lines = 4, 200
	d := open(t, t.TempDir())
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range lines {
				if err := d.Append("j", []byte(fmt.Sprintf("%d says %d\n", w, i))); err != nil {
					panic(err)
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	var out bytes.Buffer
	for offset, last := int64(0), false; ; {
		grown := d.Grown()
		var err error
		if offset, err = d.Copy(&out, "j", offset); err != nil {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		if out.Len() > 0 {
			require.Equal(t, byte('\n'), out.Bytes()[out.Len()-1])
		}
		if last {
			break
		}
		select {
		case <-grown:
		case <-written:
			last = true
		}
	}
	require.Equal(t, writers*lines, strings.Count(out.String(), "\n"))
	for w := range writers {
		at := -1
		for i := range lines {
			next := strings.Index(out.String(), fmt.Sprintf("%d says %d\n", w, i))
			require.Greater(t, next, at)
			at = next
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, id := range hostile {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		name := fileName(id)
		require.True(t, filepath.IsLocal(name), name)
		require.Equal(t, name, filepath.Base(name))
		require.LessOrEqual(t, len(name), 255)
	})
}
