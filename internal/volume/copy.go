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

// bufferSize is what is copied at a time: little enough to be in the processor's cache when its sum is made and it is written, and for
// the kernel to find memory for it at once.
const bufferSize = 256 << 10

// castagnoli is the table of the first call: to make it costs each start of the program a fifth of a millisecond. Its sums are against rot and
// torn files, at the speed of memory, and no protection from somebody who wants to deceive.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func sumText(sum uint32) string { return fmt.Sprintf("%08x", sum) }

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// targetError is an error of the file that is written, not of the one that is read.
type targetError struct{ error }

func (e targetError) Unwrap() error { return e.error }

// copyAll copies a file up to its end and returns its size and sum. Where the file system can share the blocks only the sum is left to do.
// To have the kernel copy the others would be slower, since the sum would need a look of its own at each byte.
func copyAll(ctx context.Context, p *pulse, to io.Writer, from *os.File) (size int64, sum uint32, err error) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	if target, ok := to.(*os.File); ok && clone(target, from) {
		to = io.Discard
	}
	for ctx.Err() == nil {
		n, err := from.Read(*buffer)
		part := (*buffer)[:n]
		sum = crc32.Update(sum, castagnoli(), part)
		if _, err := to.Write(part); err != nil {
			return size, sum, targetError{err}
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

// lasting are errors of a file system, or for want of something, that the next file will meet too.
var lasting = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EROFS, unix.EIO, unix.ESTALE, unix.ENOTCONN, unix.EFBIG, unix.EMFILE, unix.ENFILE, unix.ENOMEM,
}

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
