package program

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"runpodctl-worker/internal/protocol"
)

// The flags of a DONE frame.
const (
	flagRefresh byte = 1 << iota
	flagStream
	flagOutput
	flagCancelled
)

const doneHead = 5 // flags and the length of the error text

// readDone reads the payload of a large DONE frame, and its output into a file if that is what is large.
func readDone(r io.Reader, s *spooler, size int) (payload []byte, file protocol.Spool, err error) {
	begin := make([]byte, doneHead)
	if _, err := io.ReadFull(r, begin); err != nil {
		return nil, nil, err
	}
	text := binary.BigEndian.Uint32(begin[1:])
	left := int64(size) - doneHead - int64(text)
	if left < protocol.LargeOutput {
		payload, err = readPayload(io.MultiReader(bytes.NewReader(begin), r), size)
		return payload, nil, err
	}
	begin, err = readPayload(io.MultiReader(bytes.NewReader(begin), r), doneHead+int(text))
	if err != nil {
		return nil, nil, err
	}
	return s.read(r, begin, int(left))
}

// parseDone splits a DONE frame. The output stays the bytes that came.
func parseDone(f frame) (out protocol.Outcome, cancelled bool, err error) {
	payload := f.payload
	if len(payload) < doneHead {
		return out, false, errors.New("a DONE frame without its head")
	}
	flags, rest := payload[0], payload[doneHead:]
	size := binary.BigEndian.Uint32(payload[1:])
	if uint64(size) > uint64(len(rest)) {
		return out, false, errors.New("a DONE frame whose error text is cut")
	}
	out = protocol.Outcome{
		Error:   string(rest[:size]),
		Refresh: flags&flagRefresh != 0,
		Stream:  flags&flagStream != 0,
	}
	switch {
	case flags&flagOutput == 0:
		f.drop()
	case f.spool != nil:
		out.Spool = f.spool
	default:
		out.Output = rest[size:]
	}
	return out, flags&flagCancelled != 0, nil
}
