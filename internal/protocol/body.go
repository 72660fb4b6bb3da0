package protocol

import (
	"bytes"
	"io"
)

// LargeOutput is how many bytes make an output a large one, which is not copied, and kept in a file where there can be one.
const LargeOutput = 1 << 20

// Spool is a file for one large output. It is written once, then read as often as wanted. Close removes it, unless it has
// become part of something that lasts.
type Spool interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Size() int64 // of what was written
}

// Body is the body of a post, which may be sent more than once.
type Body struct {
	head  []byte
	large io.ReaderAt // between head and tail; nil: head is all
	size  int64       // of large
	tail  []byte
}

// NewBody is a body that is there already.
func NewBody(b []byte) Body { return Body{head: b} }

// Size is its Content-Length.
func (b Body) Size() int64 { return int64(len(b.head)+len(b.tail)) + b.size }

// Open reads the body from its beginning.
func (b Body) Open() io.Reader {
	if b.large == nil {
		return bytes.NewReader(b.head)
	}
	return io.MultiReader(bytes.NewReader(b.head), io.NewSectionReader(b.large, 0, b.size), bytes.NewReader(b.tail))
}
