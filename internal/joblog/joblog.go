// Package joblog keeps what there is to say about jobs: for each of them a file of lines, in one directory.
package joblog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// neverWait keeps the opening of a pipe, which somebody has put in the place of a file, from waiting for its other end.
const neverWait = syscall.O_NONBLOCK

// Dir is the directory. It is safe for concurrent use, and holds no file open between its calls, however many jobs there are.
type Dir struct {
	root *os.Root

	mu    sync.Mutex    // whoever holds it sees whole lines only
	grown chan struct{} // closed when a line has come
}

// Open makes the directory unless it is there.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, grown: make(chan struct{})}, nil
}

// Close lets go of the directory.
func (d *Dir) Close() error { return d.root.Close() }

// Append adds a line, with its end, to the file of a job. When it fails, nothing of the line is left.
func (d *Dir) Append(job string, line []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	file, err := d.root.OpenFile(fileName(job), os.O_WRONLY|os.O_APPEND|os.O_CREATE|neverWait, 0o600)
	if err != nil {
		return err
	}
	n, err := file.Write(line)
	if err != nil && n > 0 {
		err = errors.Join(err, cutEnd(file, n))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	close(d.grown)
	d.grown = make(chan struct{})
	return nil
}

// cutEnd takes the last n bytes off a file.
func cutEnd(file *os.File, n int) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return file.Truncate(info.Size() - int64(n))
}

// Grown returns a channel that is closed when the next line has been added, to whatever file.
func (d *Dir) Grown() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.grown
}

// Copy writes the lines of a job from an offset on, and returns the offset of those that will follow. The error is
// fs.ErrNotExist where nothing has been said about the job.
func (d *Dir) Copy(to io.Writer, job string, offset int64) (int64, error) {
	file, size, err := d.look(job)
	if err != nil {
		return offset, err
	}
	n, err := io.Copy(to, io.NewSectionReader(file, offset, max(size-offset, 0)))
	return offset + n, errors.Join(err, file.Close())
}

// look opens the file of a job, which has whole lines up to its size.
func (d *Dir) look(job string) (*os.File, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	file, err := d.root.OpenFile(fileName(job), os.O_RDONLY|neverWait, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file: %w", info.Name(), fs.ErrInvalid)
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}
