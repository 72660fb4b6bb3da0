package volume

import (
	"archive/tar"
	"bufio"
	"context"
	"path"
	"time"
)

const archiveBuffer = 1 << 20

// pack writes small files to a new archive, and returns how they are recorded. Those that cannot be read are left out.
func pack(ctx context.Context, p *pulse, m *mirror, from roots, files []file, left *skips) (*temp, []entry, error) {
	t, err := newTemp(m.root, archiveName, 0o666)
	if err != nil {
		return nil, nil, err
	}
	entries, err := packInto(ctx, p, t, from, files, left)
	if err != nil {
		t.drop()
		return nil, nil, err
	}
	return t, entries, nil
}

func packInto(ctx context.Context, p *pulse, t *temp, from roots, files []file, left *skips) ([]entry, error) {
	parents := &folders{roots: from}
	defer parents.close()
	out := bufio.NewWriterSize(t.file, archiveBuffer)
	archive := tar.NewWriter(out)
	entries := make([]entry, 0, len(files))
	buffer := make([]byte, threshold)
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		parent, err := parents.of(f.dir, f.rel)
		var data []byte
		var sum uint32
		if err == nil {
			data, f.stamp, sum, err = readSmall(parent, path.Base(f.rel), buffer)
		}
		if err != nil {
			left.add(f.path, reason(err))
			continue
		}
		if err := archive.WriteHeader(header(f)); err != nil {
			return nil, err
		}
		if _, err := archive.Write(data); err != nil {
			return nil, err
		}
		entries = append(entries, f.entry(sumText(sum)))
		p.file()
		p.moved(len(data))
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	return entries, t.file.Close()
}

// header has the exact time, so that the Python class restores it too.
func header(f file) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg, Format: tar.FormatPAX, Name: f.path[1:], Size: f.size, Mode: int64(f.mode),
		ModTime: time.Unix(0, f.mtime), Uid: int(f.uid), Gid: int(f.gid),
	}
}
