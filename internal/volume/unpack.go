package volume

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
)

// unpacker reads the wanted files out of an archive, which may be cut off anywhere. Several goroutines may read from it, each into
// memory of its own.
type unpacker struct {
	pulse *pulse

	mu      sync.Mutex
	archive *tar.Reader
	wanted  map[string]entry // and not found yet
	why     map[string]error // what was found instead
	end     error
}

// member is a file out of the archive that is what the manifest says.
type member struct {
	entry
	data []byte
}

var (
	errDamaged = errors.New("the archive has other bytes than the manifest says")
	errAbsent  = errors.New("the archive does not have it")
)

func newUnpacker(p *pulse, from io.Reader, wanted map[string]entry) *unpacker {
	return &unpacker{pulse: p, archive: tar.NewReader(bufio.NewReaderSize(from, bufferSize)), wanted: wanted, why: map[string]error{}}
}

// next reads the next wanted file over the last one. It is false when there is none any more, or the context has ended.
func (u *unpacker) next(ctx context.Context, m *member) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.wanted) > 0 && u.end == nil && ctx.Err() == nil {
		u.pulse.beat()
		var h *tar.Header
		if h, u.end = u.archive.Next(); u.end != nil {
			break
		}
		path := "/" + h.Name
		e, ok := u.wanted[path]
		if !ok || !plain(h) {
			continue
		}
		if err := m.read(u.archive, h, e); err != nil {
			u.why[path] = err // another one of this name may follow
			continue
		}
		delete(u.wanted, path)
		return true
	}
	return false
}

// missing tells of those that the archive does not have, or not as they should be.
func (u *unpacker) missing(tell func(path, reason string)) {
	if errors.Is(u.end, io.EOF) {
		u.end = nil
	}
	for path := range u.wanted {
		tell(path, explain(u.why[path], u.end))
	}
}

func explain(why, end error) string {
	switch {
	case why != nil:
		return why.Error()
	case end != nil:
		return fmt.Sprintf("the archive cannot be read that far: %s", end)
	default:
		return errAbsent.Error()
	}
}

// plain tells whether a member is a regular file that has all of its bytes in the archive. One with holes could claim any size.
func plain(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return false
		}
	}
	return h.Typeflag == tar.TypeReg
}

func (m *member) read(from io.Reader, h *tar.Header, e entry) error {
	if h.Size != e.Size || h.Size > maxArchive || !e.ours() && abs(h.ModTime.UnixNano()-e.nanos()) > e.slack() {
		return errDamaged
	}
	m.data = slices.Grow(m.data[:0], int(h.Size))[:h.Size]
	if _, err := io.ReadFull(from, m.data); err != nil {
		return err
	}
	if e.CRC32C != "" && sumText(crc32.Checksum(m.data, castagnoli)) != e.CRC32C {
		return errDamaged
	}
	if !e.ours() {
		e.Mode = uint32(h.Mode & 0o777)
	}
	m.entry = e
	return nil
}
