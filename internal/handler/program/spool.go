package program

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"sync"

	"runpodctl-worker/internal/protocol"
)

// copySize is how much of a large output is in memory at a time.
const copySize = 128 << 10

// spooler puts large outputs into files, so that they take no memory while they wait for their delivery.
type spooler struct {
	create func() (protocol.Spool, error) // nil: there is no place for files
	from   int                            // bytes of an output that goes into one
	log    *slog.Logger
	warned sync.Once
}

func (p *Program) newSpooler() *spooler {
	create := p.opts.Spool
	if create == nil && p.doors != nil {
		dir := p.doors.dir
		create = func() (protocol.Spool, error) { return unnamedIn(dir) }
	}
	return &spooler{create: create, from: protocol.LargeOutput, log: p.log}
}

// read reads what is left of a payload into a file. What the disk does not take is kept in memory: then there is no file, and the
// payload is whole.
func (s *spooler) read(r io.Reader, begin []byte, left int) (payload []byte, file protocol.Spool, err error) {
	size := len(begin) + left
	file, err = s.create()
	if err != nil {
		s.warn(err)
		payload, err = readPayload(io.MultiReader(bytes.NewReader(begin), r), size)
		return payload, nil, err
	}
	for buf := make([]byte, copySize); left > 0; {
		part := buf[:min(left, len(buf))]
		if _, err = io.ReadFull(r, part); err != nil {
			_ = file.Close()
			return nil, nil, err
		}
		n, full := file.Write(part)
		if full != nil {
			s.warn(full)
			written := io.NewSectionReader(file, 0, file.Size())
			payload, err = readPayload(io.MultiReader(bytes.NewReader(begin), written, bytes.NewReader(part[n:]), r), size)
			_ = file.Close()
			return payload, nil, err
		}
		left -= n
	}
	return begin, file, nil
}

// outcome puts the output of an outcome into a file, if it is a large one.
func (s *spooler) outcome(o protocol.Outcome) protocol.Outcome {
	if s.create == nil || len(o.Output) < s.from {
		return o
	}
	file, err := s.create()
	if err == nil {
		if _, err = file.Write(o.Output); err != nil {
			_ = file.Close()
		}
	}
	if err != nil {
		s.warn(err)
		return o
	}
	o.Output, o.Spool = nil, file
	return o
}

func (s *spooler) warn(err error) {
	s.warned.Do(func() {
		s.log.Warn("Large results are kept in memory: there is no file for them.", slog.Any("error", err))
	})
}

// unnamed is a file that goes with this process, however that ends.
type unnamed struct {
	file *os.File // not embedded: it would be written past Write
	size int64
}

// unnamedIn makes a file in a directory of our own, which is removed by the next start if this process does not get so far as to
// take the name away.
func unnamedIn(dir string) (protocol.Spool, error) {
	file, err := os.CreateTemp(dir, "large-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &unnamed{file: file}, nil
}

func (u *unnamed) Write(b []byte) (int, error) {
	n, err := u.file.Write(b)
	u.size += int64(n)
	return n, err
}

func (u *unnamed) ReadAt(b []byte, at int64) (int, error) { return u.file.ReadAt(b, at) }
func (u *unnamed) Size() int64                            { return u.size }
func (u *unnamed) Close() error                           { return u.file.Close() }
