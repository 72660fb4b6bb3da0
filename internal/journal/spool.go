package journal

import (
	"hash/crc32"
	"io"
	"os"

	"runpodctl-worker/internal/protocol"
)

// spool is the file of a large result: its output, and, once it is part of the journal, the head of the outcome behind that.
type spool struct {
	file   *os.File // not embedded: it would be written past Write
	number uint64
	size   int64  // of the output
	sum    uint32 // of it
	kept   bool   // by the journal; else it goes when it is closed
}

// Spool makes a file for a large output. When that becomes a result it lies where it has to be.
func (j *Journal) Spool() (protocol.Spool, error) {
	s, err := j.newSpool()
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (j *Journal) newSpool() (*spool, error) {
	number := j.nextNumber()
	file, err := createFile(j.path(number, draftEnd))
	if err != nil {
		return nil, err
	}
	return &spool{file: file, number: number}, nil
}

func (j *Journal) nextNumber() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	return j.number
}

func (s *spool) Write(b []byte) (int, error) {
	n, err := s.file.Write(b)
	s.size += int64(n)
	s.sum = crc32.Update(s.sum, table(), b[:n])
	return n, err
}

func (s *spool) ReadAt(b []byte, at int64) (int, error) { return s.file.ReadAt(b, at) }
func (s *spool) Size() int64                            { return s.size }

func (s *spool) Close() error {
	if !s.kept {
		_ = os.Remove(s.file.Name()) // the next start tries again
	}
	return s.file.Close()
}

// keep makes the file of a large outcome that of a result. An output that lies in none is copied into one.
func (j *Journal) keep(o protocol.Outcome, head []byte) (kept result, err error) {
	if !j.roomFor(o.Size()) {
		return kept, errHeld
	}
	s, ours := o.Spool.(*spool)
	if !ours {
		if s, err = j.newSpool(); err != nil {
			return kept, err
		}
		defer func() { _ = s.Close() }()
		output, size := o.Content()
		if _, err = io.Copy(s, io.NewSectionReader(output, 0, size)); err != nil {
			return kept, err
		}
	}
	if _, err = s.file.WriteAt(head, s.size); err != nil {
		return kept, err
	}
	if err = os.Rename(s.file.Name(), j.payload(s.number)); err != nil {
		return kept, err
	}
	s.kept = true
	tail := int64(len(head))
	return result{file: s.number, size: s.size + tail, tail: tail, sum: crc32.Update(s.sum, table(), head)}, nil
}

// recall opens the file of a result.
func (j *Journal) recall(kept result) (o protocol.Outcome, err error) {
	file, err := os.Open(j.payload(kept.file))
	if err != nil {
		return o, err
	}
	defer func() {
		if o.Spool == nil {
			_ = file.Close()
		}
	}()
	if err = verify(file, kept); err != nil {
		return o, err
	}
	kept.at = kept.size - kept.tail
	head := make([]byte, kept.tail)
	if _, err = file.ReadAt(head, kept.at); err != nil {
		return o, err
	}
	if o, err = decodeOutcome(head); err != nil || o.Output == nil {
		return o, err
	}
	o.Output, o.Spool = nil, &spool{file: file, size: kept.at, kept: true}
	return o, nil
}

// verify reads a file to see that it has what was written.
func verify(file *os.File, kept result) error {
	sum := crc32.New(table())
	if n, err := io.Copy(sum, io.NewSectionReader(file, 0, kept.size)); err != nil || n < kept.size || sum.Sum32() != kept.sum {
		return errOutcome
	}
	return nil
}
