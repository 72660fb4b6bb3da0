package program

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"runpodctl-worker/internal/protocol"
)

// kind is the type of a frame. The numbers are those of the shim's frames.py.
type kind byte

const (
	kindJob   kind = 1
	kindCheck kind = 2

	kindData     kind = 16
	kindChunk    kind = 17
	kindProgress kind = 18
	kindDone     kind = 19
	kindAsync    kind = 20

	kindWelcome  kind = 32
	kindRefused  kind = 33
	kindCancel   kind = 34
	kindCredit   kind = 35
	kindModifier kind = 36
	kindShutdown kind = 37
	kindAck      kind = 38

	kindHello      kind = 48
	kindReply      kind = 49
	kindLocal      kind = 50
	kindProgressOf kind = 51
)

const (
	headerSize = 9
	maxPayload = 256 << 20 // far above every limit of the platform
	firstRead  = 1 << 20   // memory that a length alone, before its bytes, can claim
)

// frame is a type, the number of a job or a request, and a payload.
type frame struct {
	kind    kind
	number  uint32
	payload []byte
	spool   protocol.Spool // the rest of the payload where that is the large output of a DONE frame; else nil
}

// drop gives up a frame that nobody wants.
func (f frame) drop() {
	if f.spool != nil {
		_ = f.spool.Close()
	}
}

// errFrame is a frame that no program sends that knows the protocol. Every other error of a read is
// the end of the stream: a process that dies may leave a reset, or a part of a frame.
var errFrame = errors.New("over the limit")

// readFrame reads one frame. io.EOF means that the stream ended between two frames. Large outputs go to the spooler, if there is one.
func readFrame(r *bufio.Reader, s *spooler) (frame, error) {
	var head [headerSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return frame{}, errors.New("the stream ended inside a frame's header")
		}
		return frame{}, err
	}
	f := frame{kind: kind(head[0]), number: binary.BigEndian.Uint32(head[1:])}
	size := binary.BigEndian.Uint32(head[5:])
	if size > maxPayload {
		return frame{}, fmt.Errorf("a frame of %d bytes: %w of %d", size, errFrame, maxPayload)
	}
	var err error
	if s != nil && f.kind == kindDone {
		f.payload, f.spool, err = readDone(r, s, int(size))
	} else {
		f.payload, err = readPayload(r, int(size))
	}
	if err != nil {
		return frame{}, fmt.Errorf("the stream ended inside a frame of %d bytes", size)
	}
	return f, nil
}

// readPayload lets a large payload grow as it arrives: its length may be a lie.
func readPayload(r io.Reader, size int) ([]byte, error) {
	payload := make([]byte, min(size, firstRead))
	read := 0
	for {
		n, err := io.ReadFull(r, payload[read:])
		read += n
		if err != nil || read == size {
			return payload, err
		}
		bigger := make([]byte, min(size, 4*len(payload)))
		copy(bigger, payload)
		payload = bigger
	}
}

// conn is one connection of the program. Writers may be concurrent; there is one reader.
type conn struct {
	net.Conn
	r  *bufio.Reader
	s  *spooler // nil: every frame is read into memory
	mu sync.Mutex
}

func newConn(c net.Conn) *conn { return &conn{Conn: c, r: bufio.NewReaderSize(c, 64<<10)} }

func (c *conn) read() (frame, error) { return readFrame(c.r, c.s) }

func (c *conn) send(k kind, number uint32, payload []byte) error {
	var head [headerSize]byte
	head[0] = byte(k)
	binary.BigEndian.PutUint32(head[1:], number)
	binary.BigEndian.PutUint32(head[5:], uint32(len(payload))) //nolint:gosec // payloads are far below 4 GiB
	bufs := net.Buffers{head[:], payload}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := bufs.WriteTo(c.Conn) // one writev
	return err
}
