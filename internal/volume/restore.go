package volume

import (
	"context"
	"path"
	"runtime"
	"sync"
)

// small reads the archive once, from its begin to its end. Each of several goroutines reads a file and writes it, by turns.
func (d *download) small(ctx context.Context, wanted map[string]entry) error {
	if len(wanted) == 0 {
		return nil
	}
	file, info, err := openRegular(d.mirror.root, archiveName)
	if err != nil {
		for path := range wanted {
			d.left.add(path, "the archive: "+reason(err))
		}
		return nil
	}
	defer func() { _ = file.Close() }()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := newUnpacker(d.pulse, file, info.Size(), wanted)
	var writers sync.WaitGroup
	for range runtime.NumCPU() { // the disk is a local one: nobody waits for it for long
		writers.Go(func() {
			if err := d.write(ctx, u); err != nil {
				cancel(err)
			}
		})
	}
	writers.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	u.missing(d.left.add)
	return nil
}

func (d *download) write(ctx context.Context, u *unpacker) error {
	parents := &folders{roots: d.dirs, create: true}
	defer parents.close()
	for m := (member{}); u.next(ctx, &m); {
		err := d.writeSmall(parents, m)
		if err := d.note(m.entry, true, err); err != nil {
			return err
		}
		d.pulse.moved(len(m.data))
	}
	return nil
}

func (d *download) writeSmall(parents *folders, m member) error {
	dir, rel, _ := d.cache.locate(m.Path)
	parent, err := parents.of(dir, rel, m.entry)
	if err != nil {
		return targetError{err}
	}
	t, err := newTemp(parent, path.Base(rel), 0o600)
	if err != nil {
		return targetError{err}
	}
	if _, err = t.file.Write(m.data); err == nil {
		err = t.finish(m.entry)
	}
	if err != nil {
		t.drop()
		return targetError{err}
	}
	return nil
}
