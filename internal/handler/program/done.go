package program

import (
	"bufio"
	"encoding/binary"
	"errors"

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

// readDone reads the payload of a DONE frame, and its output into a file if that is large.
func readDone(r *bufio.Reader, s *spooler, size int) (payload []byte, file protocol.Spool, err error) {
	if size < doneHead+s.from {
		payload, err = readPayload(r, size)
		return payload, nil, err
	}
	head, err := r.Peek(doneHead)
	if err != nil {
		return nil, nil, err
	}
	text := binary.BigEndian.Uint32(head[1:])
	output := int64(size) - doneHead - int64(text)
	if output < int64(s.from) { // the error is what is large, or says that it is
		payload, err = readPayload(r, size)
		return payload, nil, err
	}
	begin, err := readPayload(r, size-int(output))
	if err != nil {
		return nil, nil, err
	}
	return s.read(r, begin, int(output))
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
