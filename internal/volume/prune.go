package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// leftover is something in a mirror.
type leftover struct {
	name string // below the mirror
	size int64
	age  time.Duration // since it or its name was last changed, by the clock of the volume
	dir  bool
}

// isTemp tells whether a file is on its way, one of ours or of the Python class.
func (l leftover) isTemp() bool {
	return strings.HasSuffix(l.name, tempEnd) || strings.HasSuffix(l.name, tempEnd+".list")
}

// leftovers lists all that lies in a mirror, folders after what is in them.
func (m *mirror) leftovers(ctx context.Context, p *pulse) ([]leftover, error) {
	l := lister{ctx: ctx, pulse: p, now: clock(m.root)}
	err := l.folder(m.root, "")
	return l.found, err
}

type lister struct {
	ctx   context.Context
	pulse *pulse
	now   time.Time
	found []leftover
}

func (l *lister) folder(root *os.Root, name string) error {
	self, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = self.Close() }()
	names, err := self.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, base := range names {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		l.pulse.beat()
		var st unix.Stat_t
		if unix.Fstatat(int(self.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		item := leftover{
			name: path.Join(name, base), size: st.Size, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR,
			age: l.now.Sub(lastChange(&st, l.now)),
		}
		if item.dir {
			inner, err := root.OpenRoot(base)
			if err == nil {
				err = l.folder(inner, item.name)
				_ = inner.Close()
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		l.found = append(l.found, item)
	}
	return nil
}

// lastChange is when a file or its name was last changed. Its time may lie in the future, as the one that it was copied from has it.
func lastChange(st *unix.Stat_t, now time.Time) time.Time {
	changed, written := time.Unix(0, st.Ctim.Nano()), time.Unix(0, st.Mtim.Nano())
	if written.After(changed) && !written.After(now) {
		return written
	}
	return changed
}

// sweep removes what writers that were killed have left behind.
func (m *mirror) sweep(ctx context.Context, p *pulse, age time.Duration) error {
	found, err := m.leftovers(ctx, p)
	if err != nil {
		return fmt.Errorf("look for temporary files in the mirror: %w", err)
	}
	for _, l := range found {
		if l.isTemp() && !l.dir && l.age > age {
			_ = m.root.Remove(l.name) // the next one tries again
		}
	}
	return nil
}

// Prune removes what lies in the mirror and belongs to nothing: large files that the manifest does not name, what was
// left behind by writers that were killed, empty folders. What was written a moment ago may be part of a sync that is not at
// its end, and stays.
func (c *Cache) Prune(ctx context.Context, dryRun bool) (Pruned, error) {
	return guard(ctx, c, func(ctx context.Context, p *pulse) (Pruned, error) {
		return c.prune(ctx, p, dryRun)
	})
}

func (c *Cache) prune(ctx context.Context, p *pulse, dryRun bool) (Pruned, error) {
	pruned := Pruned{Files: []string{}}
	m, err := c.openToRead()
	if err != nil {
		return pruned, err
	}
	if m == nil {
		return pruned, c.noMirror()
	}
	defer m.close()
	held := func() error { return nil }
	if !dryRun {
		l, err := m.lock(ctx, p, c)
		if err != nil {
			return pruned, err
		}
		defer l.release()
		held = l.held
	}
	if m.manifest == nil {
		return pruned, fmt.Errorf("%s has no manifest that can be read, so nothing says what belongs there; sync first", c.mirrorPath())
	}
	found, err := m.leftovers(ctx, p)
	if err != nil {
		return pruned, err
	}
	if err := held(); err != nil {
		return pruned, err
	}
	for _, l := range m.orphans(found, c.limits.temps) {
		if err := ctx.Err(); err != nil {
			return pruned, err
		}
		if !dryRun {
			if err := m.root.Remove(l.name); err != nil {
				return pruned, fmt.Errorf("remove from the mirror: %w", err)
			}
		}
		p.beat()
		pruned.Files = append(pruned.Files, l.name)
		pruned.Bytes += l.size
	}
	return pruned, nil
}

// orphans are what belongs to nothing, of all that was found.
func (m *mirror) orphans(found []leftover, age time.Duration) []leftover {
	named := map[string]bool{}
	for name, k := range m.manifest.files {
		if !k.packed {
			named[bigName+name] = true
		}
	}
	var orphans []leftover
	used := map[string]bool{} // folders
	for _, l := range found {
		gone := l.age > age
		switch {
		case l.dir:
			gone = gone && !used[l.name] && strings.HasPrefix(l.name, bigName+"/")
			l.size = 0
		case l.isTemp():
		default:
			gone = gone && strings.HasPrefix(l.name, bigName+"/") && !named[l.name]
		}
		if gone {
			orphans = append(orphans, l)
		} else {
			used[path.Dir(l.name)] = true
		}
	}
	return orphans
}
