package volume

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"
)

// The names in a mirror, and the version of its format.
const (
	version      = 1
	threshold    = 256 << 10 // smaller files are packed
	manifestName = "manifest.json"
	archiveName  = "small.tar"
	bigName      = "big"
)

const (
	tolerance  = 2 * time.Second      // of times that the Python class has recorded
	exactness  = 2 * time.Microsecond // of our own: the Python class restores them through a float
	maxPath    = 4096
	maxName    = 255
	maxArchive = 16 << 20 // of one packed file: it may have grown when the Python class packed it

	maxManifest = 256 << 20
)

// manifest says what a mirror holds. Links and refs, and what an entry has beyond the first three fields, are our own; the
// Python class reads past them and does not write them.
type manifest struct {
	Version   int     `json:"version"`
	Threshold int64   `json:"threshold"`
	Small     []entry `json:"small"`
	Big       []entry `json:"big"`
	Refs      []entry `json:"refs,omitempty"`
	Links     []link  `json:"links,omitempty"`
	Archive   archive `json:"archive,omitzero"`

	written time.Time
	files   map[string]known // all of them, by their paths
	bad     []Skip           // entries that make no sense
}

// entry is a file of the mirror.
type entry struct {
	Path   string  `json:"path"`
	Size   int64   `json:"size"`
	MTime  float64 `json:"mtime"`
	Nanos  int64   `json:"mtime_ns,omitempty"`
	Mode   uint32  `json:"mode,omitempty"`
	UID    uint32  `json:"uid,omitempty"`
	GID    uint32  `json:"gid,omitempty"`
	CRC32C string  `json:"crc32c,omitempty"`
}

// link is a symbolic link.
type link struct {
	Path   string `json:"path"`
	Target string `json:"target"`
}

// archive tells whether the archive is still the one that was written with the manifest.
type archive struct {
	Size  int64 `json:"size"`
	Nanos int64 `json:"mtime_ns"`
}

// ours tells whether an entry was written by this program, so that its time is exact. That of a reproducible build may be 0.
func (e entry) ours() bool { return e.Nanos != 0 || e.CRC32C != "" }

// owned tells whether there is an owner to be restored, and whether we may.
func (e entry) owned() bool { return os.Geteuid() == 0 && (e.UID != 0 || e.GID != 0) }

// nanos is the time of the file.
func (e entry) nanos() int64 {
	if e.ours() {
		return e.Nanos
	}
	return int64(e.MTime * 1e9)
}

// slack is by how much two times of the same file may differ.
func (e entry) slack() int64 {
	if e.ours() {
		return int64(exactness)
	}
	return int64(tolerance)
}

// packed tells whether a file of this size lies in the archive.
func packed(size int64) bool { return size < threshold }

var errManifest = errors.New("not a manifest of this version")

// readManifest reads the manifest of a mirror. One that is not there, or of another version, is fs.ErrNotExist or errManifest.
func readManifest(root *os.Root) (*manifest, error) {
	if info, err := root.Lstat(manifestName); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: it is a %s", errManifest, kind(info.Mode()))
	}
	file, info, err := openRegular(root, manifestName)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info.Size() > maxManifest {
		return nil, fmt.Errorf("%w: it has %d bytes", errManifest, info.Size())
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	m, err := parseManifest(data)
	if err != nil {
		return nil, err
	}
	m.written = info.ModTime()
	return m, nil
}

func parseManifest(data []byte) (*manifest, error) {
	m, ok := decodeManifest(data)
	if !ok {
		m = &manifest{}
		if err := json.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("%w: %w", errManifest, err)
		}
	}
	if m.Version != version {
		return nil, fmt.Errorf("%w: it has version %d", errManifest, m.Version)
	}
	m.index()
	return m, nil
}

// draftManifest writes a manifest. It becomes the one of the mirror when it lands.
func draftManifest(root *os.Root, m *manifest) (*temp, error) {
	t, err := newTemp(root, manifestName, 0o666)
	if err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(t.file, bufferSize)
	err = json.NewEncoder(out).Encode(m)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = checkLength(t.file)
	}
	if err == nil {
		err = t.file.Close()
	}
	if err != nil {
		t.drop()
		return nil, err
	}
	return t, nil
}

// writeManifest makes a manifest the one of the mirror, in one step.
func writeManifest(root *os.Root, m *manifest) error {
	t, err := draftManifest(root, m)
	if err != nil {
		return err
	}
	if err := t.land(); err != nil {
		t.drop()
		return err
	}
	return nil
}

// checkLength refuses a manifest that no reader would take.
func checkLength(file *os.File) error {
	info, err := file.Stat()
	if err == nil && info.Size() > maxManifest {
		err = fmt.Errorf("it would have %d bytes, more than the %d that are read: cache fewer files", info.Size(), int64(maxManifest))
	}
	return err
}

// sane tells whether a path of a manifest can be one that a sync has written.
func sane(name string) error {
	switch {
	case !path.IsAbs(name) || path.Clean(name) != name || name == "/":
		return errors.New("not an absolute path in its shortest form")
	case len(name) >= maxPath || strings.ContainsRune(name, 0) || !utf8.ValidString(name):
		return errors.New("not a path")
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxName {
			return errors.New("a name that is too long")
		}
	}
	return nil
}

// check tells whether an entry can be one that a sync has written.
func (e entry) check() error {
	if e.Size < 0 {
		return errors.New("a negative size")
	}
	if math.Abs(e.MTime) > math.MaxInt64/1e9 {
		return errors.New("a time that cannot be")
	}
	return sane(e.Path)
}

var errIrregular = errors.New("where a file belongs there is")

func irregular(info fs.FileInfo) error { return fmt.Errorf("%w a %s", errIrregular, kind(info.Mode())) }

// openRegular opens a file that is no device, pipe or folder; a link must not lead out of the root.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(info)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, info, nil
}
