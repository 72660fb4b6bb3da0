package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
)

// download is the copying of one hydrate.
type download struct {
	cache  *Cache
	pulse  *pulse
	mirror *mirror
	dirs   roots
	left   *skips

	mu       sync.Mutex
	files    Count
	unpacked int // of these, out of the archive
	links    int
}

// run copies small and large files side by side, and makes the links when the files are there.
func (d *download) run(ctx context.Context, plan *hydratePlan) error {
	var err error
	if d.dirs, err = d.cache.openDirs(plan.dirs); err != nil {
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

func (d *download) big(ctx context.Context, e entry) error {
	err := d.bigOnce(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.note(e, false, err)
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
	root, err := d.dirs.at(dir)
	if err != nil {
		return targetError{err}
	}
	if err := makeFolders(root, path.Dir(rel), e); err != nil {
		return targetError{err}
	}
	t, err := newTemp(root, rel, 0o600)
	if err != nil {
		return targetError{err}
	}
	size, sum, err := copyAll(ctx, d.pulse, t.file, from)
	switch {
	case err != nil:
	case size != e.Size || e.CRC32C != "" && sumText(sum) != e.CRC32C:
		err = errOther
	default:
		if err = t.finish(e); err != nil {
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
	return fmt.Errorf("%w: %d of them, not %d", errOther, mirror, manifest)
}

// note counts a file that is there, or says why it is not. An error that the next file will meet too ends it all.
func (d *download) note(e entry, packed bool, err error) error {
	var target targetError
	switch {
	case err == nil:
		d.mu.Lock()
		d.files.add(e.Size)
		if packed {
			d.unpacked++
		}
		d.mu.Unlock()
		d.pulse.file()
	case errors.As(err, &target) && lasts(err):
		return fmt.Errorf("write %s: %w", e.Path, err)
	default:
		d.left.add(e.Path, reason(err))
	}
	return nil
}
