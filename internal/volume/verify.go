package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

const maxProblems = 200

// Verify reads the whole mirror and compares it with the manifest. To repair it is to remove what has other bytes than it should
// have: the next sync of a worker that has the right ones brings them again.
func (c *Cache) Verify(ctx context.Context, repair bool) (Findings, error) {
	began := time.Now()
	found, err := guard(ctx, c, func(ctx context.Context, p *pulse) (Findings, error) { return c.verify(ctx, p, repair) })
	found.Seconds = time.Since(began).Seconds()
	return found, err
}

func (c *Cache) verify(ctx context.Context, p *pulse, repair bool) (Findings, error) {
	m, err := c.openToRead()
	if err != nil {
		return Findings{}, err
	}
	if m == nil {
		return Findings{}, c.noMirror()
	}
	defer m.close()
	v := &verifier{mirror: m, pulse: p, lost: map[string]bool{}}
	held := func() error { return nil }
	if repair {
		l, err := m.lock(ctx, p, c)
		if err != nil {
			return Findings{}, err
		}
		defer l.release()
		held = l.held
	}
	if m.manifest == nil {
		if _, err := readManifest(m.root); errors.Is(err, errManifest) {
			v.problem(manifestName, err)
		}
		return v.found, nil
	}
	small, big := map[string]entry{}, []entry(nil)
	var todo Count
	for _, bad := range m.manifest.bad {
		v.problem(bad.Path, errors.New(bad.Reason))
	}
	for _, k := range m.manifest.files {
		todo.add(k.Size)
		if k.CRC32C == "" {
			v.found.Unhashed++
		}
		if k.packed {
			small[k.Path] = k.entry
		} else {
			big = append(big, k.entry)
		}
	}
	p.begin("verify", todo)
	if err := v.archive(ctx, small); err != nil {
		return v.found, err
	}
	err = each(ctx, c.opts.Copiers, big, v.big)
	if err == nil && repair {
		if err = held(); err == nil {
			err = v.repair()
		}
	}
	slices.SortFunc(v.found.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return v.found, err
}

type verifier struct {
	mirror *mirror
	pulse  *pulse

	mu    sync.Mutex
	found Findings
	wrong []string        // below the mirror: files with other bytes than they should have
	lost  map[string]bool // what should be in the archive and is not
}

func (v *verifier) problem(path string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found.ProblemsTotal++
	if len(v.found.Problems) < maxProblems {
		v.found.Problems = append(v.found.Problems, Problem{path, reason(err)})
	}
}

func (v *verifier) looked(size int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found.Files++
	v.found.Bytes += size
	v.pulse.file()
}

func (v *verifier) archive(ctx context.Context, small map[string]entry) error {
	if len(small) == 0 {
		return nil
	}
	file, info, err := openRegular(v.mirror.root, archiveName)
	if err != nil {
		for path := range small {
			v.problem(path, err)
			v.lost[path] = errors.Is(err, fs.ErrNotExist)
		}
		return nil
	}
	defer func() { _ = file.Close() }()
	u := newUnpacker(v.pulse, file, info.Size(), small)
	for m := (member{}); u.next(ctx, &m); {
		v.pulse.moved(len(m.data))
		v.looked(m.Size)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	u.missing(func(path, reason string) {
		v.problem(path, errors.New(reason))
		v.lost[path] = !u.failed()
	})
	if u.damaged() {
		v.wrong = append(v.wrong, archiveName)
	}
	return nil
}

// repair removes what was found to be wrong, and the entries of what the archive has not, or has no more. Without that no sync of the
// Python class would pack it again, and none of ours what the class has packed as a hard link.
func (v *verifier) repair() error {
	noArchive := slices.Contains(v.wrong, archiveName)
	rest := v.mirror.manifest.without(func(k known) bool { return k.packed && (noArchive || v.lost[k.Path]) })
	if len(rest.Small)+len(rest.Refs) < len(v.mirror.manifest.Small)+len(v.mirror.manifest.Refs) {
		if err := writeManifest(v.mirror.root, rest); err != nil {
			return fmt.Errorf("write the manifest: %w", err)
		}
	}
	slices.Sort(v.wrong)
	for _, name := range v.wrong {
		if err := v.mirror.root.Remove(name); err != nil {
			return fmt.Errorf("remove from the mirror: %w", err)
		}
		v.found.Removed = append(v.found.Removed, name)
	}
	return nil
}

func (v *verifier) big(ctx context.Context, e entry) error {
	err := v.bigOnce(ctx, e)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		v.problem(e.Path, err)
		if errors.Is(err, errOther) {
			v.mu.Lock()
			v.wrong = append(v.wrong, bigName+e.Path)
			v.mu.Unlock()
		}
		return nil
	}
	v.looked(e.Size)
	return nil
}

func (v *verifier) bigOnce(ctx context.Context, e entry) error {
	if v.mirror.big == nil {
		return errors.New("there is no folder of large files")
	}
	file, info, err := openRegular(v.mirror.big, bigFile(e.Path))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if info.Size() != e.Size {
		return sizeError(info.Size(), e.Size)
	}
	if e.CRC32C == "" {
		return nil
	}
	_, sum, err := copyAll(ctx, v.pulse, io.Discard, file)
	if err == nil && sumText(sum) != e.CRC32C {
		err = errOther
	}
	return err
}
