package volume

import (
	"errors"
	"io"
	"math"
)

// headers is an archive for a tar.Reader that looks at the headers only, and skips what lies between them.
type headers struct {
	from   io.ReaderAt
	at     int64 // what is read next
	ahead  []byte
	buffer [headersAhead]byte
}

// headersAhead is read at a time: the header of a file, with the records that its exact time needs, behind the end of the one before.
const headersAhead = 4 << 10

func (h *headers) Read(into []byte) (int, error) {
	if len(h.ahead) == 0 {
		n, err := h.from.ReadAt(h.buffer[:], h.at)
		if n == 0 {
			return 0, err
		}
		h.ahead = h.buffer[:n]
	}
	n := copy(into, h.ahead)
	h.at, h.ahead = h.at+int64(n), h.ahead[n:]
	return n, nil
}

func (h *headers) Seek(offset int64, whence int) (int64, error) {
	switch {
	case whence != io.SeekCurrent || offset < 0:
		return 0, errors.ErrUnsupported
	case offset > math.MaxInt64-h.at:
		return 0, io.ErrUnexpectedEOF
	}
	h.at += offset
	h.ahead = h.ahead[min(offset, int64(len(h.ahead))):]
	return h.at, nil
}
