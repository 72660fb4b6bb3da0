package program

import (
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

// parseDone splits the payload of a DONE frame. The output stays the bytes that came.
func parseDone(payload []byte) (out protocol.Outcome, cancelled bool, err error) {
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
	if flags&flagOutput != 0 {
		out.Output = rest[size:]
	}
	return out, flags&flagCancelled != 0, nil
}
