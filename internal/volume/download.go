package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"
)

// download is the copying of one hydrate.
type download struct {
	cache  *Cache
	pulse  *pulse
	mirror *mirror
	dirs   roots
	left   *skips

	mu    sync.Mutex
	files Count
	links int
}

// run copies small and large files side by side, and makes the links when the files are there.
func (d *download) run(ctx context.Context, plan *hydratePlan) error {
	var err error
	if d.dirs, err = d.cache.openDirs(true); err != nil {
		return err
	}
	defer d.dirs.close()
	d.pulse.begin("hydrate", plan.todo)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var unpacking sync.WaitGroup
	unpacking.Go(func() {
		if err := d.small(ctx, plan.small); err != nil {
			cancel(err)
		}
	})
	if err := each(ctx, d.cache.opts.Copiers, plan.big, d.big); err != nil {
		cancel(err)
	}
	unpacking.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return d.makeLinks(ctx, plan.links)
}

// small reads the archive once, from its begin to its end, while several goroutines write what is in it.
func (d *download) small(ctx context.Context, wanted map[string]entry) error {
	if len(wanted) == 0 {
		return nil
	}
	file, _, err := openRegular(d.mirror.root, archiveName)
	if err != nil {
		for path := range wanted {
			d.left.add(path, "the archive: "+reason(err))
		}
		return nil
	}
	defer func() { _ = file.Close() }()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	members := make(chan member)
	var writers sync.WaitGroup
	for range d.cache.opts.Copiers {
		writers.Go(func() {
			if err := d.write(members); err != nil {
				cancel(err)
			}
		})
	}
	err = unpack(ctx, d.pulse, file, wanted, func(m member) error {
		select {
		case members <- m:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, d.left.add)
	close(members)
	writers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (d *download) write(members <-chan member) error {
	parents := &folders{roots: d.dirs, create: true}
	defer parents.close()
	for m := range members {
		err := d.writeSmall(parents, m)
		if err := d.note(m.entry, err); err != nil {
			return err
		}
		d.pulse.moved(len(m.data))
	}
	return nil
}

func (d *download) writeSmall(parents *folders, m member) error {
	dir, rel, _ := d.cache.locate(m.Path)
	parent, err := parents.of(dir, rel)
	if err != nil {
		return targetError{err}
	}
	t, err := newTemp(parent, path.Base(rel), 0o600)
	if err != nil {
		return targetError{err}
	}
	if _, err = t.file.Write(m.data); err == nil {
		err = finish(t, m.entry)
	}
	if err != nil {
		t.drop()
		return targetError{err}
	}
	return nil
}

func finish(t *temp, e entry) error {
	if err := t.dress(e); err != nil {
		return err
	}
	return t.land()
}

func (d *download) big(ctx context.Context, e entry) error {
	err := d.bigOnce(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.note(e, err)
}

func (d *download) bigOnce(ctx context.Context, e entry) error {
	if d.mirror.big == nil {
		return fs.ErrNotExist
	}
	from, info, err := openRegular(d.mirror.big, bigFile(e.Path))
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if info.Size() != e.Size {
		return sizeError(info.Size(), e.Size)
	}
	if !e.ours() {
		e.Mode = uint32(info.Mode().Perm())
	}
	dir, rel, _ := d.cache.locate(e.Path)
	if err := d.dirs[dir].MkdirAll(path.Dir(rel), newDir); err != nil {
		return targetError{err}
	}
	t, err := newTemp(d.dirs[dir], rel, 0o600)
	if err != nil {
		return targetError{err}
	}
	size, sum, err := copyAll(ctx, d.pulse, t.file, from)
	switch {
	case err != nil:
	case size != e.Size || e.CRC32C != "" && sumText(sum) != e.CRC32C:
		err = errOther
	default:
		if err = finish(t, e); err != nil {
			err = targetError{err}
		}
	}
	if err != nil {
		t.drop()
	}
	return err
}

var errOther = errors.New("it has other bytes in the mirror than the manifest says")

func sizeError(mirror, manifest int64) error {
	return fmt.Errorf("it has %d bytes in the mirror, and %d in the manifest", mirror, manifest)
}

// note counts a file that is there, or says why it is not. An error that the next file will meet too ends it all.
func (d *download) note(e entry, err error) error {
	var target targetError
	switch {
	case err == nil:
		d.mu.Lock()
		d.files.add(e.Size)
		d.mu.Unlock()
		d.pulse.file()
	case errors.As(err, &target) && lasts(err):
		return fmt.Errorf("write %s: %w", e.Path, err)
	default:
		d.left.add(e.Path, reason(err))
	}
	return nil
}

// removeTemps removes what a hydrate that was killed has left behind.
func (c *Cache) removeTemps(t *tree) {
	if len(t.temps) == 0 {
		return
	}
	dirs, err := c.openDirs(false)
	if err != nil {
		return
	}
	defer dirs.close()
	for _, f := range t.temps {
		root, err := dirs.at(f.dir)
		if err == nil && time.Since(time.Unix(0, f.ctime)) > c.limits.temps {
			_ = root.Remove(f.rel) // the next one tries again
		}
	}
}
