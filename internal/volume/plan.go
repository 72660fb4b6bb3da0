package volume

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// known is what the manifest says of a path.
type known struct {
	entry
	packed bool
}

// index finds the entries by their paths, once. Those that no sync can have written are left out.
func (m *manifest) index() {
	m.files = make(map[string]known, len(m.Small)+len(m.Big)+len(m.Refs))
	add := func(entries []entry, inArchive func(entry) bool) {
		for _, e := range entries {
			if err := e.check(); err != nil {
				m.bad = append(m.bad, Skip{e.Path, err.Error()})
				continue
			}
			m.files[e.Path] = known{e, inArchive(e)}
		}
	}
	add(m.Small, func(entry) bool { return true })
	add(m.Big, func(entry) bool { return false })
	add(m.Refs, func(e entry) bool { return packed(e.Size) })
}

// without is the manifest without the entries of some files.
func (m *manifest) without(lost func(known) bool) *manifest {
	rest := *m
	for _, list := range []*[]entry{&rest.Small, &rest.Big, &rest.Refs} {
		*list = slices.DeleteFunc(append([]entry{}, *list...), func(e entry) bool { return lost(m.files[e.Path]) })
	}
	return &rest
}

// syncPlan is what a sync has to do.
type syncPlan struct {
	repack bool // whenever one small file has changed
	small  []file
	big    []file  // to copy
	kept   []entry // what stays as it is in the mirror; not the small ones if these are packed anew
	known  map[string]known
	dirty  bool // the manifest says something else
	todo   Count
}

func (s *syncPlan) nothing() bool { return !s.dirty && !s.repack && len(s.big) == 0 }

// load is what has to be read and written.
func (s *syncPlan) load() Count {
	var n Count
	for _, f := range s.big {
		n.add(f.size)
	}
	if s.repack {
		for _, f := range s.small {
			n.add(f.size)
		}
	}
	return n
}

// planSync compares the directories with the mirror.
func (c *Cache) planSync(ctx context.Context, p *pulse, t *tree, m *mirror) (*syncPlan, error) {
	s := &syncPlan{dirty: m.manifest == nil}
	if m.manifest != nil {
		s.known = m.manifest.files
	}
	s.small = make([]file, 0, len(t.files))
	keptSmall := make([]entry, 0, len(t.files))
	var kept []entry
	var large []file
	seen := c.lastSeen()
	for _, f := range t.files {
		k, isKnown := s.known[f.path]
		same := isKnown && k.packed == packed(f.size) && k.matches(f.stamp) && !touched(seen[f.path], f.stamp)
		switch {
		case !packed(f.size) && same:
			large = append(large, f)
			continue
		case !packed(f.size):
			s.big = append(s.big, f)
		default:
			s.small = append(s.small, f)
			if same {
				keptSmall = append(keptSmall, s.keep(k.entry, f))
				continue
			}
			s.repack = true
		}
		s.todo.add(f.size)
	}
	missing, kept, err := s.mirrored(ctx, p, c, m, large)
	if err != nil {
		return nil, err
	}
	s.big = append(s.big, missing...)
	for _, f := range missing {
		s.todo.add(f.size)
	}
	s.kept = kept
	s.judge(t, m, len(keptSmall))
	if !s.repack {
		s.kept = append(s.kept, keptSmall...)
	}
	return s, nil
}

// judge finds what is to be done although no file has changed.
func (s *syncPlan) judge(t *tree, m *mirror, keptSmall int) {
	before := 0
	for _, k := range s.known {
		if k.packed {
			before++
		}
	}
	if before != keptSmall || len(s.small) > 0 && !m.archiveFits() {
		s.repack = true // one was deleted, or the archive is another than the manifest's
	}
	if m.manifest == nil {
		return
	}
	if len(m.manifest.bad) > 0 || len(s.known) != len(s.kept)+keptSmall || !slices.Equal(m.manifest.Links, t.links) {
		s.dirty = true
	}
}

// mirrored tells which large files the mirror has, of those that it should have.
func (s *syncPlan) mirrored(ctx context.Context, p *pulse, c *Cache, m *mirror, files []file) (missing []file, kept []entry, err error) {
	if m.big == nil {
		return files, nil, nil
	}
	there := make([]bool, len(files))
	numbers := make([]int, len(files))
	for i := range numbers {
		numbers[i] = i
	}
	err = each(ctx, c.opts.Copiers, numbers, func(_ context.Context, i int) error {
		info, err := m.big.Lstat(bigFile(files[i].path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && lasts(err) {
			return err
		}
		there[i] = err == nil && info.Mode().IsRegular() && info.Size() == files[i].size
		p.beat()
		return nil
	})
	for i, f := range files {
		if there[i] {
			kept = append(kept, s.keep(s.known[f.path].entry, f))
		} else {
			missing = append(missing, f)
		}
	}
	return missing, kept, err
}

// keep is the entry of a file whose content has not changed.
func (s *syncPlan) keep(e entry, f file) entry {
	if e.ours() && e.Mode != f.mode {
		e.Mode = f.mode
		s.dirty = true
	}
	return e
}

// matches tells whether a file is the one that was recorded.
func (e entry) matches(s stamp) bool {
	return e.Size == s.size && abs(s.mtime-e.nanos()) <= e.slack()
}

// touched tells whether a file was written since we saw it although its time and size are the same.
func touched(before, now stamp) bool {
	return before.inode != 0 && before.size == now.size && before.mtime == now.mtime &&
		(before.inode != now.inode || before.ctime != now.ctime)
}

func abs(n int64) int64 { return max(n, -n) }

// archiveFits tells whether the archive is the one that the manifest was written with, as far as can be told.
func (m *mirror) archiveFits() bool {
	if m.manifest == nil {
		return false
	}
	now, then := m.archive(archiveName), m.manifest.Archive
	if then == (archive{}) { // the Python class does not say
		return now != archive{}
	}
	return now.Size == then.Size && abs(now.Nanos-then.Nanos) <= int64(tolerance)
}

func isRef(path string) bool { return strings.Contains(path, refsFolder) }
