package volume

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// tree is what the directories hold.
type tree struct {
	files []file
	links []link
	temps []file           // left behind by a process that was killed
	found map[string]stamp // of files and links
	skips skips
}

// file is a regular file in one of the directories.
type file struct {
	dir  int
	rel  string
	path string
	stamp
}

// stamp changes with the content of a file, whatever somebody does to its times.
type stamp struct {
	size, mtime, ctime int64
	inode              uint64
	mode, uid, gid     uint32
	link               bool
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), inode: st.Ino,
		mode: uint32(st.Mode) & uint32(os.ModePerm), //nolint:unconvert // it has 16 bits on darwin
		uid:  st.Uid, gid: st.Gid, link: st.Mode&unix.S_IFMT == unix.S_IFLNK,
	}
}

// entry is how a file is recorded.
func (f file) entry(sum string) entry {
	return entry{
		Path: f.path, Size: f.size, MTime: float64(f.mtime) / 1e9, Nanos: f.mtime,
		Mode: f.mode, UID: f.uid, GID: f.gid, CRC32C: sum,
	}
}

// look scans the directories while the mirror is opened and its manifest is read.
func (c *Cache) look(ctx context.Context, p *pulse, open func() (*mirror, error)) (*tree, *mirror, error) {
	p.begin("look", Count{})
	type opened struct {
		mirror *mirror
		err    error
	}
	opening := make(chan opened, 1)
	go func() {
		m, err := open()
		opening <- opened{m, err}
	}()
	t, err := c.scan(ctx, p)
	o := <-opening
	if err == nil {
		err = o.err
	} else if o.mirror != nil {
		o.mirror.close()
	}
	return t, o.mirror, err
}

// scan looks at everything in the directories, without opening a file.
func (c *Cache) scan(ctx context.Context, p *pulse) (*tree, error) {
	dirs, err := c.openDirs(false)
	if err != nil {
		return nil, err
	}
	defer dirs.close()
	t := &tree{found: map[string]stamp{}}
	for i, root := range dirs {
		if root == nil {
			continue
		}
		w := walk{ctx: ctx, pulse: p, tree: t, dir: i, top: c.dirs[i]}
		if err := w.folder(root, ""); err != nil {
			return nil, err
		}
	}
	t.links = slices.DeleteFunc(t.links, func(l link) bool {
		err := c.leadsInside(l)
		if err != nil {
			t.skips.add(l.Path, err.Error())
		}
		return err != nil
	})
	return t, nil
}

// walk goes through one directory.
type walk struct {
	ctx   context.Context
	pulse *pulse
	tree  *tree
	dir   int
	top   string
}

// folder looks at what lies in a folder. One that cannot be read, or is gone, is left out.
func (w *walk) folder(root *os.Root, rel string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.pulse.beat()
	self, err := root.Open(".")
	if err != nil {
		w.skip(rel, err)
		return nil
	}
	defer func() { _ = self.Close() }()
	names, err := self.Readdirnames(-1)
	if err != nil {
		w.skip(rel, err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.item(root, int(self.Fd()), rel, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) item(root *os.Root, fd int, rel, name string) error {
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil // it was there a moment ago
	}
	rel = path.Join(rel, name)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		inner, err := root.OpenRoot(name)
		if err != nil {
			w.skip(rel, err)
			return nil
		}
		defer func() { _ = inner.Close() }()
		return w.folder(inner, rel)
	case unix.S_IFREG:
		w.regular(rel, stampOf(&st))
	case unix.S_IFLNK:
		w.link(root, name, rel, stampOf(&st))
	default:
		w.skip(rel, errors.New("neither a file nor a link"))
	}
	return nil
}

func (w *walk) regular(rel string, s stamp) {
	f := file{w.dir, rel, w.top + "/" + rel, s}
	switch {
	case strings.HasSuffix(rel, tempEnd):
		w.tree.temps = append(w.tree.temps, f)
	case excluded(f.path):
	case unreadable(f.path) != nil:
		w.skip(rel, unreadable(f.path))
	default:
		w.tree.files = append(w.tree.files, f)
		w.tree.found[f.path] = s
	}
}

func (w *walk) link(root *os.Root, name, rel string, s stamp) {
	l := link{Path: w.top + "/" + rel}
	if excluded(l.Path) {
		return
	}
	var err error
	if l.Target, err = root.Readlink(name); err != nil {
		w.skip(rel, err)
		return
	}
	if err := cmp.Or(unreadable(l.Path), unreadable(l.Target)); err != nil {
		w.skip(rel, err)
		return
	}
	w.tree.links = append(w.tree.links, l)
	w.tree.found[l.Path] = s
}

// unreadable tells why a path would not come back out of a manifest.
func unreadable(name string) error {
	switch {
	case !utf8.ValidString(name):
		return errors.New("a name that is not UTF-8")
	case len(name) >= maxPath:
		return errors.New("a path that is too long")
	}
	return nil
}

func (w *walk) skip(rel string, err error) { w.tree.skips.add(path.Join(w.top, rel), reason(err)) }

// reason is an error without the path, which is said beside it.
func reason(err error) string {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return err.Error()
}
