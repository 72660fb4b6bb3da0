package volume

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// unpacker reads the wanted files out of an archive, which may be cut off anywhere. Several goroutines may read from it, each into
// memory of its own: only the headers are read by turns.
type unpacker struct {
	pulse *pulse
	from  io.ReaderAt

	mu      sync.Mutex
	headers *headers
	archive *tar.Reader
	wanted  map[string]entry // and not found yet
	why     map[string]error // what was found of them instead
	bad     map[string]error // found, but not what the manifest says
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

// newUnpacker reads an archive of a size, beyond which no header leads.
func newUnpacker(p *pulse, file io.ReaderAt, size int64, wanted map[string]entry) *unpacker {
	from := io.NewSectionReader(file, 0, size)
	h := &headers{from: from}
	return &unpacker{pulse: p, from: from, headers: h, archive: tar.NewReader(h), wanted: wanted, why: map[string]error{}, bad: map[string]error{}}
}

// next reads the next wanted file over the last one. It is false when there is none any more, or the context has ended.
func (u *unpacker) next(ctx context.Context, m *member) bool {
	for ctx.Err() == nil {
		at, ok := u.find(ctx, m)
		if !ok {
			return false
		}
		err := m.read(u.from, at)
		if err == nil {
			return true
		}
		u.spoilt(m.Path, err)
	}
	return false
}

// find takes the next wanted file off the list, and tells where in the archive it is.
func (u *unpacker) find(ctx context.Context, m *member) (at int64, ok bool) {
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
		if !e.describes(h) {
			u.why[path] = errDamaged // another one of this name may follow
			continue
		}
		if !e.ours() {
			e.Mode = uint32(h.Mode & 0o777)
		}
		m.entry = e
		delete(u.wanted, path)
		return u.headers.at, true
	}
	return 0, false
}

func (u *unpacker) spoilt(path string, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bad[path] = why
}

// missing tells of those that the archive does not have, or not as they should be.
func (u *unpacker) missing(tell func(path, reason string)) {
	if errors.Is(u.end, io.EOF) {
		u.end = nil
	}
	for path := range u.wanted {
		tell(path, explain(u.why[path], u.end))
	}
	for path, why := range u.bad {
		tell(path, why.Error())
	}
}

func explain(why, end error) string {
	switch {
	case why != nil:
		return why.Error()
	case end != nil:
		return unreachable(end).Error()
	default:
		return errAbsent.Error()
	}
}

func unreachable(end error) error { return fmt.Errorf("the archive cannot be read that far: %w", end) }

// failed tells whether the archive could not be read, which says nothing of what is in it.
func (u *unpacker) failed() bool {
	for _, why := range u.bad {
		if unread(why) {
			return true
		}
	}
	return unread(u.end)
}

// damaged tells whether something stands in the archive that should not.
func (u *unpacker) damaged() bool {
	for path := range u.wanted {
		if u.why[path] != nil {
			return !u.failed()
		}
	}
	return (len(u.bad) > 0 || u.end != nil) && !u.failed()
}

// unread tells whether an error is one of the file system, not of what stands in the archive.
func unread(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
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

// describes tells whether a member can be the file of an entry.
func (e entry) describes(h *tar.Header) bool {
	return h.Size == e.Size && h.Size <= maxArchive && (e.ours() || abs(h.ModTime.UnixNano()-e.nanos()) <= e.slack())
}

func (m *member) read(from io.ReaderAt, at int64) error {
	m.data = slices.Grow(m.data[:0], int(m.Size))[:m.Size]
	if _, err := io.ReadFull(io.NewSectionReader(from, at, m.Size), m.data); err != nil {
		return unreachable(err)
	}
	if m.CRC32C != "" && sumText(crc32.Checksum(m.data, castagnoli())) != m.CRC32C {
		return errDamaged
	}
	return nil
}
