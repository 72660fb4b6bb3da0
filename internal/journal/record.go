package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// magic begins every segment; its last byte is the version of the format.
const magic = "rpwjrnl\x01"

// A record is a frame, the length of its body and the checksum of that, and the body: the kind, the job's id with its
// length before it, and what the kind adds.
const (
	frameSize = 8
	maxJobID  = 1 << 10
	// maxInline is the largest result that lies in the segment itself. A larger one is a file beside it.
	maxInline = 16 << 10
	maxBody   = maxInline + maxJobID + 16
)

// The kinds of records.
const (
	kindTaken     byte = iota + 1
	kindInline         // a result: the outcome follows
	kindFile           // a result: number, size, tail and checksum of its file follow
	kindSettled        // nothing is owed for the job
	kindCrashed        // how often the job took the program down follows; 0: nothing speaks against it any more
	kindSuspected      // the job had a worker to itself that died
	kindBeside         // the job ran beside others in a worker that died
)

// A torn segment ends inside a record, as a write does that was interrupted. Anything else that is wrong is damage.
var (
	errTorn   = errors.New("ends inside a record")
	errDamage = errors.New("is damaged")
)

// table is made when it is first asked for: that takes longer than the start of a program that has no journal.
func table() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

type record struct {
	kind   byte
	job    string
	result result // of kindInline and kindFile
	count  uint64 // of kindCrashed
}

// result says where the outcome of a job lies.
type result struct {
	file     uint64 // number of its file, 0: in the segment
	at, size int64
	tail     int64 // of a file: how much of it is the head of the outcome, which is at its end
	sum      uint32
}

// begin starts a record at the end of buf, which is empty.
func begin(buf []byte, kind byte, job string) []byte {
	buf = append(buf[:0], make([]byte, frameSize)...)
	buf = append(buf, kind)
	buf = binary.AppendUvarint(buf, uint64(len(job)))
	return append(buf, job...)
}

// seal completes the record that buf holds.
func seal(buf []byte) []byte {
	body := buf[frameSize:]
	binary.LittleEndian.PutUint32(buf, uint32(len(body)))
	binary.LittleEndian.PutUint32(buf[4:], crc32.Checksum(body, table()))
	return buf
}

// encode is a whole record of any kind but kindInline, whose outcome its caller adds.
func encode(buf []byte, r record) []byte {
	buf = begin(buf, r.kind, r.job)
	switch r.kind {
	case kindFile:
		buf = binary.AppendUvarint(buf, r.result.file)
		buf = binary.AppendUvarint(buf, uint64(r.result.size))
		buf = binary.AppendUvarint(buf, uint64(r.result.tail))
		buf = binary.LittleEndian.AppendUint32(buf, r.result.sum)
	case kindCrashed:
		buf = binary.AppendUvarint(buf, r.count)
	}
	return seal(buf)
}

// scan visits the records of a segment. It returns the length of what could be read, and why that is not all.
func scan(segment []byte, visit func(record)) (good int, err error) {
	if len(segment) < len(magic) || string(segment[:len(magic)]) != magic {
		return 0, fmt.Errorf("%w, or not a journal of this version", errDamage)
	}
	for good = len(magic); good < len(segment); {
		rest := segment[good:]
		if len(rest) < frameSize {
			return good, errTorn
		}
		size := binary.LittleEndian.Uint32(rest)
		if size > maxBody {
			return good, errDamage
		}
		if len(rest) < frameSize+int(size) {
			return good, errTorn
		}
		body := rest[frameSize : frameSize+int(size)]
		if crc32.Checksum(body, table()) != binary.LittleEndian.Uint32(rest[4:]) {
			return good, errDamage
		}
		r, ok := decode(body, int64(good+frameSize))
		if !ok {
			return good, errDamage
		}
		visit(r)
		good += frameSize + int(size)
	}
	return good, nil
}

// decode reads the body of a record that begins at an offset of its segment.
func decode(body []byte, offset int64) (r record, ok bool) {
	if len(body) == 0 {
		return r, false
	}
	r.kind = body[0]
	in := reader{rest: body[1:]}
	r.job = string(in.take(in.uvarint()))
	switch r.kind {
	case kindTaken, kindSettled, kindSuspected, kindBeside:
	case kindInline:
		r.result = result{at: offset + int64(len(body)-len(in.rest)), size: int64(len(in.rest)), sum: crc32.Checksum(in.rest, table())}
		in.rest = nil
	case kindFile:
		r.result = result{file: in.uvarint(), size: int64(in.uvarint()), tail: int64(in.uvarint())}
		if sum := in.take(4); sum != nil {
			r.result.sum = binary.LittleEndian.Uint32(sum)
		}
		in.bad = in.bad || r.result.file == 0 || r.result.tail < 0 || r.result.tail > r.result.size
	case kindCrashed:
		r.count = in.uvarint()
	default:
		return r, false
	}
	return r, !in.bad && len(in.rest) == 0
}

// reader takes values from the front of what is left. After one that is not there it is bad.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	value, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return value
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}
