package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
)

func (c *Cache) sync(ctx context.Context, p *pulse) (result, error) {
	t, m, err := c.look(ctx, p, c.openToWrite)
	if err != nil {
		return result{}, err
	}
	defer m.close()
	if !c.anyDir() { // else a worker that has not made its folders yet would empty the mirror
		return result{seen: t.found}, nil
	}
	plan, err := c.planSync(ctx, p, t, m)
	if err != nil {
		return result{}, err
	}
	r := result{seen: t.found}
	if !plan.nothing() {
		err = c.syncLocked(ctx, p, t, m, &r)
	} else {
		r.report.Unchanged = len(t.files)
	}
	r.report.Skipped, r.report.SkippedTotal = t.skips.list, t.skips.total
	return r, err
}

func (c *Cache) anyDir() bool {
	for _, dir := range c.dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// syncLocked takes the lock and looks again, since another writer may have been at work.
func (c *Cache) syncLocked(ctx context.Context, p *pulse, t *tree, m *mirror, r *result) error {
	l, err := takeLock(ctx, p, m.root, c.limits)
	if err != nil {
		return err
	}
	defer l.release()
	if err := m.reread(c); err != nil {
		return err
	}
	plan, err := c.planSync(ctx, p, t, m)
	if err != nil {
		return err
	}
	if err := m.sweep(ctx, p, c.limits.temps); err != nil {
		return err
	}
	dirs, err := c.openDirs(false)
	if err != nil {
		return err
	}
	defer dirs.close()
	if dirs.none() { // they were taken away while the lock was waited for
		return nil
	}
	job := &upload{cache: c, pulse: p, mirror: m, dirs: dirs, plan: plan, tree: t}
	defer job.cleanUp()
	p.begin("sync", plan.load())
	if err := job.copy(ctx); err != nil {
		return err
	}
	if err := l.held(); err != nil {
		return err
	}
	if err := job.commit(ctx); err != nil {
		return err
	}
	sent := job.sent()
	r.report.Files, r.report.Bytes = sent.Files, sent.Bytes
	r.report.Unchanged = len(t.files) - plan.todo.Files
	r.report.Links = len(t.links)
	return nil
}

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
	u.archive, u.packed, err = pack(ctx, u.pulse, u.mirror, u.dirs, u.plan.small, &u.tree.skips)
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
		u.tree.skips.add(f.path, reason(err))
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
	if err := u.mirror.big.MkdirAll(path.Dir(name), sharedDir); err != nil {
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

// commit makes what was copied the mirror. The manifest comes last.
func (u *upload) commit(ctx context.Context) error {
	for len(u.staged) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.staged[0].land(); err != nil {
			return fmt.Errorf("put a copy in its place: %w", err)
		}
		u.staged = u.staged[1:]
	}
	if u.archive != nil {
		if err := u.archive.land(); err != nil {
			return fmt.Errorf("put the archive in its place: %w", err)
		}
		u.archive = nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m := u.manifest()
	if err := writeManifest(u.mirror.root, m); err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if len(u.plan.small) == 0 {
		if err := u.mirror.root.Remove(archiveName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the archive, of which nothing is left: %w", err)
		}
	}
	return nil
}

func (u *upload) manifest() *manifest {
	m := &manifest{Version: version, Threshold: threshold, Small: []entry{}, Big: []entry{}, Links: u.tree.links}
	if len(u.plan.small) > 0 {
		m.Archive = u.mirror.archive()
	}
	for _, list := range [][]entry{u.plan.kept, u.packed, u.copied} {
		for _, e := range list {
			switch {
			case isRef(e.Path):
				m.Refs = append(m.Refs, e)
			case packed(e.Size):
				m.Small = append(m.Small, e)
			default:
				m.Big = append(m.Big, e)
			}
		}
	}
	return m
}

// sent counts what the mirror did not have before. Small files that have not changed are packed again with the others.
func (u *upload) sent() Count {
	var n Count
	for _, e := range u.copied {
		n.add(e.Size)
	}
	for _, e := range u.packed {
		if k := u.plan.known[e.Path]; !k.packed || k.CRC32C != e.CRC32C || k.nanos() != e.nanos() {
			n.add(e.Size)
		}
	}
	return n
}

// cleanUp removes what did not become part of the mirror.
func (u *upload) cleanUp() {
	if u.archive != nil {
		u.archive.drop()
	}
	for _, t := range u.staged {
		t.drop()
	}
}
