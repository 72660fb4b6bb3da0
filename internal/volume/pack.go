package volume

import (
	"archive/tar"
	"bufio"
	"context"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// pack writes small files to a new archive, and returns how they are recorded. Those that cannot be read are left out, if leave lets them.
func pack(ctx context.Context, p *pulse, m *mirror, from roots, files []file, leave leaver) (*temp, []entry, error) {
	t, err := newTemp(m.root, archiveName, 0o666)
	if err != nil {
		return nil, nil, err
	}
	entries, err := packInto(ctx, p, t, from, files, leave)
	if err != nil {
		t.drop()
		return nil, nil, err
	}
	return t, entries, nil
}

func packInto(ctx context.Context, p *pulse, t *temp, from roots, files []file, leave leaver) ([]entry, error) {
	out := bufio.NewWriterSize(t.file, bufferSize)
	k := &packer{pulse: p, archive: tar.NewWriter(out), entries: make([]entry, 0, len(files)), leave: leave}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var taken atomic.Int64
	var readers sync.WaitGroup
	for range runtime.NumCPU() { // the disk is a local one: nobody waits for it for long
		readers.Go(func() {
			next := func() (file, bool) {
				i := int(taken.Add(1)) - 1
				if i >= len(files) || ctx.Err() != nil {
					return file{}, false
				}
				return files[i], true
			}
			if err := k.pack(from, next); err != nil {
				cancel(err)
			}
		})
	}
	readers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := k.archive.Close(); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	return k.entries, t.file.Close()
}

// leaver is told of a file that cannot be read, and returns an error if there is no going on without it.
type leaver func(path string, err error) error

// packer is an archive that several goroutines write to. Each reads its files into memory of its own.
type packer struct {
	pulse *pulse
	leave leaver

	mu      sync.Mutex
	archive *tar.Writer
	entries []entry
}

func (k *packer) pack(from roots, next func() (file, bool)) error {
	parents := &folders{roots: from}
	defer parents.close()
	buffer := make([]byte, threshold)
	for f, ok := next(); ok; f, ok = next() {
		parent, err := parents.of(f.dir, f.rel, entry{})
		var data []byte
		var sum uint32
		if err == nil {
			data, f.stamp, sum, err = readSmall(parent, path.Base(f.rel), buffer)
		}
		if err != nil {
			if err := k.leave(f.path, err); err != nil {
				return err
			}
			continue
		}
		if err := k.write(f, data, sum); err != nil {
			return err
		}
	}
	return nil
}

func (k *packer) write(f file, data []byte, sum uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.archive.WriteHeader(header(f)); err != nil {
		return err
	}
	if _, err := k.archive.Write(data); err != nil {
		return err
	}
	k.entries = append(k.entries, f.entry(sumText(sum)))
	k.pulse.file()
	k.pulse.moved(len(data))
	return nil
}

// header has the exact time, so that the Python class restores it too.
func header(f file) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg, Format: tar.FormatPAX, Name: f.path[1:], Size: f.size, Mode: int64(f.mode),
		ModTime: time.Unix(0, f.mtime), Uid: int(f.uid), Gid: int(f.gid),
	}
}
