package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"

	"runpodctl-worker/internal/protocol"
)

// An outcome is written as its head, which is flags, the length of its error and the error, and the output: in a segment behind the
// head, in a file of its own before it, since the output is there first. Whether it asks for a fresh worker is left out:
// the process that reads it again is one.
const (
	flagOutput byte = 1 << iota
	flagStream
)

var errOutcome = errors.New("the result that was kept cannot be read")

// outcomeHead is an outcome without its output, which is written from where it lies.
func outcomeHead(o protocol.Outcome) []byte {
	var flags byte
	if o.Output != nil || o.Spool != nil {
		flags |= flagOutput
	}
	if o.Stream {
		flags |= flagStream
	}
	head := make([]byte, 0, len(o.Error)+8)
	head = append(head, flags)
	head = binary.AppendUvarint(head, uint64(len(o.Error)))
	return append(head, o.Error...)
}

func checksum(head, output []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, table()), table(), output)
}

func decodeOutcome(data []byte) (o protocol.Outcome, err error) {
	if len(data) == 0 || data[0]&^(flagOutput|flagStream) != 0 {
		return o, errOutcome
	}
	in := reader{rest: data[1:]}
	o.Error = string(in.take(in.uvarint()))
	o.Stream = data[0]&flagStream != 0
	if data[0]&flagOutput != 0 {
		o.Output, in.rest = in.rest, nil
	}
	if in.bad || len(in.rest) > 0 {
		return protocol.Outcome{}, errOutcome
	}
	return o, nil
}

// writeFile writes a new file. If it fails, there is none.
func writeFile(path string, content []byte) error {
	file, err := createFile(path)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // the next start tries again
	}
	return err
}
