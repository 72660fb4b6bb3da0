package volume

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	bufferSize = 256 << 10
	rangeSize  = 1 << 20 // what the kernel copies at a time, and is then in the processor's cache for the sum
)

// castagnoli makes sums against rot and torn files, at the speed of memory. It is no protection from somebody who wants to deceive.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumText(sum uint32) string { return fmt.Sprintf("%08x", sum) }

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// targetError is an error of the file that is written, not of the one that is read.
type targetError struct{ error }

func (e targetError) Unwrap() error { return e.error }

// copyAll copies a file up to its end and returns its size and sum. On one file system the kernel does it, or shares the blocks.
func copyAll(ctx context.Context, p *pulse, to io.Writer, from *os.File) (size int64, sum uint32, err error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	target, inKernel := to.(*os.File)
	for ctx.Err() == nil {
		var n int
		if inKernel {
			if n = copyRange(target, from, rangeSize); n <= 0 {
				inKernel = false // whatever the reason is: the other way tells
				continue
			}
			sum, err = sumRange(sum, from, size, n, *buffer)
		} else {
			n, err = copyOnce(to, from, *buffer)
			sum = crc32.Update(sum, castagnoli, (*buffer)[:n])
		}
		size += int64(n)
		p.moved(n)
		if errors.Is(err, io.EOF) {
			return size, sum, nil
		}
		if err != nil {
			return size, sum, err
		}
	}
	return size, sum, ctx.Err()
}

func copyOnce(to io.Writer, from io.Reader, buffer []byte) (int, error) {
	n, err := from.Read(buffer)
	if n > 0 {
		if _, err := to.Write(buffer[:n]); err != nil {
			return 0, targetError{err}
		}
	}
	return n, err
}

// sumRange adds to a sum what was copied from a place in a file.
func sumRange(sum uint32, from io.ReaderAt, at int64, n int, buffer []byte) (uint32, error) {
	for n > 0 {
		part := buffer[:min(n, len(buffer))]
		if _, err := from.ReadAt(part, at); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, part)
		at += int64(len(part))
		n -= len(part)
	}
	return sum, nil
}

// lasting are errors of a file system that the next file will meet too.
var lasting = []error{unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.EFBIG}

func lasts(err error) bool {
	for _, one := range lasting {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// each does something with all items, a few at a time. The first error ends it.
func each[T any](ctx context.Context, limit int, items []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan T)
	var workers sync.WaitGroup
	for range min(limit, len(items)) {
		workers.Go(func() {
			for item := range queue {
				if err := do(ctx, item); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for _, item := range items {
		select {
		case queue <- item:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}
