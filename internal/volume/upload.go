package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// upload is the copying of one sync.
type upload struct {
	cache  *Cache
	pulse  *pulse
	mirror *mirror
	dirs   roots
	plan   *syncPlan
	tree   *tree

	archive *temp
	packed  []entry

	mu     sync.Mutex
	copied []entry
	staged []*temp // they take the place of what the old manifest names, so they wait for the new one
}

// copy brings everything to the volume. Nothing that the old manifest names is touched.
func (u *upload) copy(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var packing sync.WaitGroup
	packing.Go(func() {
		if err := u.pack(ctx); err != nil {
			cancel(fmt.Errorf("pack the small files: %w", err))
		}
	})
	err := each(ctx, u.cache.opts.Copiers, u.plan.big, u.big)
	if err != nil {
		cancel(err)
	}
	packing.Wait()
	return context.Cause(ctx)
}

func (u *upload) pack(ctx context.Context) error {
	if !u.plan.repack || len(u.plan.small) == 0 {
		return nil
	}
	var err error
	u.archive, u.packed, err = pack(ctx, u.pulse, u.mirror, u.dirs, u.plan.small, u.leave)
	return err
}

// big copies one large file, if the mirror does not have it yet.
func (u *upload) big(ctx context.Context, f file) error {
	var e entry
	var err error
	for range attempts {
		if e, err = u.bigOnce(ctx, f); !errors.Is(err, errUnstable) {
			break
		}
	}
	var target targetError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		u.mu.Lock()
		u.copied = append(u.copied, e)
		u.mu.Unlock()
		u.pulse.file()
	case errors.As(err, &target) && lasts(err):
		return fmt.Errorf("copy %s to the volume: %w", f.path, err)
	default:
		return u.leave(f.path, err)
	}
	return nil
}

func (u *upload) bigOnce(ctx context.Context, f file) (entry, error) {
	root, err := u.dirs.at(f.dir)
	if err != nil {
		return entry{}, err
	}
	s, err := openSource(root, f.rel)
	if err != nil {
		return entry{}, err
	}
	defer func() { _ = s.file.Close() }()
	if f.stamp = s.before; packed(f.size) {
		return entry{}, errResized
	}
	if u.there(f) {
		size, sum, err := copyAll(ctx, u.pulse, io.Discard, s.file)
		if err == nil {
			err = s.still(size)
		}
		if err != nil || u.holds(ctx, f, sum) {
			return f.entry(sumText(sum)), err
		}
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return entry{}, err
		}
	}
	name := bigFile(f.path)
	if err := u.makeRoom(name); err != nil {
		return entry{}, targetError{err}
	}
	t, err := newTemp(u.mirror.big, name, 0o666)
	if err != nil {
		return entry{}, targetError{err}
	}
	e, err := u.fill(ctx, t, s, f)
	if err == nil {
		err = u.place(t, f)
	}
	if err != nil {
		t.drop()
	}
	return e, err
}

// there tells whether a sync that was killed before its end has copied a file already. What the manifest names and is to be copied
// all the same is not what it should be.
func (u *upload) there(f file) bool {
	if k, ok := u.plan.known[f.path]; ok && k.matches(f.stamp) {
		return false
	}
	info, err := u.mirror.big.Lstat(bigFile(f.path))
	return err == nil && info.Mode().IsRegular() && f.entry("").matches(stamp{size: info.Size(), mtime: info.ModTime().UnixNano()})
}

// holds tells whether a file of the mirror has this sum: another version may have had the same size and time.
func (u *upload) holds(ctx context.Context, f file, sum uint32) bool {
	file, _, err := openRegular(u.mirror.big, bigFile(f.path))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	size, there, err := copyAll(ctx, u.pulse, io.Discard, file)
	return err == nil && size == f.size && there == sum
}

func (u *upload) fill(ctx context.Context, t *temp, s *source, f file) (entry, error) {
	size, sum, err := copyAll(ctx, u.pulse, t.file, s.file)
	if err != nil {
		return entry{}, err
	}
	if err := s.still(size); err != nil {
		return entry{}, err
	}
	e := f.entry(sumText(sum))
	mirrored := e
	mirrored.UID, mirrored.GID = 0, 0 // on the volume it belongs to whoever has written it
	if err := t.dress(mirrored); err != nil {
		return entry{}, targetError{err}
	}
	return e, nil
}

// makeRoom makes the folders of a file. What the mirror has in their place, or in that of the file, may be about to be named by
// another writer.
func (u *upload) makeRoom(name string) error {
	err := u.mirror.big.MkdirAll(path.Dir(name), sharedDir)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return errInTheWay
	}
	if info, err := u.mirror.big.Lstat(name); err == nil && info.IsDir() {
		return errInTheWay
	}
	return err
}

var errInTheWay = errors.New("the mirror has something else in its place, which `cache prune` removes unless it belongs there")

// place gives a copy its name, now or when all are there.
func (u *upload) place(t *temp, f file) error {
	if _, replaces := u.plan.known[f.path]; replaces {
		u.mu.Lock()
		u.staged = append(u.staged, t)
		u.mu.Unlock()
		return nil
	}
	if err := t.land(); err != nil {
		return targetError{err}
	}
	return nil
}
