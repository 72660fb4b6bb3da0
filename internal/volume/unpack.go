package volume

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// member is a file out of the archive that is what the manifest says.
type member struct {
	entry
	data []byte
}

var (
	errDamaged = errors.New("the archive has other bytes than the manifest says")
	errAbsent  = errors.New("the archive does not have it")
)

// unpack reads the archive and yields the wanted files. Those that it does not have, or not as they should be, are missing; it may
// be cut off anywhere.
func unpack(ctx context.Context, p *pulse, from io.Reader, wanted map[string]entry, yield func(member) error, missing func(path, reason string)) error {
	archive := tar.NewReader(bufio.NewReaderSize(from, archiveBuffer))
	why := map[string]error{}
	var end error
	for len(wanted) > 0 && end == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.beat()
		var h *tar.Header
		if h, end = archive.Next(); end != nil {
			break
		}
		path := "/" + h.Name
		e, ok := wanted[path]
		if !ok || !plain(h) {
			continue
		}
		data, err := readMember(archive, h, e)
		if err != nil {
			why[path] = err // another one of this name may follow
			continue
		}
		if !e.ours() {
			e.Mode = uint32(h.Mode & 0o777)
		}
		delete(wanted, path)
		if err := yield(member{e, data}); err != nil {
			return err
		}
	}
	if errors.Is(end, io.EOF) {
		end = nil
	}
	for path := range wanted {
		missing(path, explain(why[path], end))
	}
	return nil
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

func readMember(from io.Reader, h *tar.Header, e entry) ([]byte, error) {
	if h.Size != e.Size || h.Size > maxArchive || !e.ours() && abs(h.ModTime.UnixNano()-e.nanos()) > e.slack() {
		return nil, errDamaged
	}
	data := make([]byte, h.Size)
	if _, err := io.ReadFull(from, data); err != nil {
		return nil, err
	}
	if e.CRC32C != "" && sumText(crc32.Checksum(data, castagnoli)) != e.CRC32C {
		return nil, errDamaged
	}
	return data, nil
}
