package volume

import (
	"errors"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

var (
	errUnstable = errors.New("it changes while it is copied")
	errResized  = errors.New("its size has changed meanwhile")
)

// attempts to copy a file that changes meanwhile.
const attempts = 2

// source is a local file that is being read.
type source struct {
	file   *os.File
	before stamp
}

func openSource(root *os.Root, name string) (*source, error) {
	file, _, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	s := &source{file: file}
	if s.before, err = s.stamp(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return s, nil
}

func (s *source) stamp() (stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(s.file.Fd()), &st)
	return stampOf(&st), err
}

// still returns an error if the file is not what it was when it was opened, or if another number of bytes was read.
func (s *source) still(size int64) error {
	now, err := s.stamp()
	if err == nil && (now != s.before || now.size != size) {
		err = errUnstable
	}
	return err
}

// readSmall reads a file that is to be packed, and tells what it was like then.
func readSmall(root *os.Root, name string, buffer []byte) (data []byte, now stamp, sum uint32, err error) {
	for range attempts {
		data, now, err = readOnce(root, name, buffer)
		if !errors.Is(err, errUnstable) {
			break
		}
	}
	return data, now, crc32.Checksum(data, castagnoli()), err
}

func readOnce(root *os.Root, name string, buffer []byte) ([]byte, stamp, error) {
	s, err := openSource(root, name)
	if err != nil {
		return nil, stamp{}, err
	}
	defer func() { _ = s.file.Close() }()
	if !packed(s.before.size) {
		return nil, stamp{}, errResized
	}
	data := buffer[:s.before.size]
	if _, err := io.ReadFull(s.file, data); err != nil {
		return nil, stamp{}, errUnstable
	}
	return data, s.before, s.still(s.before.size)
}
