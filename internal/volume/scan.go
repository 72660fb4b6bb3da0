package volume

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
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

	hidden map[string]error // files and folders that could not be looked at
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
	dirs, err := c.openDirs(nil)
	if err != nil {
		return nil, err
	}
	defer dirs.close()
	t := &tree{hidden: map[string]error{}}
	var parts []*part
	for i, root := range dirs {
		if root != nil {
			w := &walk{ctx: ctx, pulse: p, skips: &t.skips, dir: i, top: c.dirs[i], hidden: map[string]error{}}
			parts = append(parts, w.all(root)...)
			maps.Copy(t.hidden, w.hidden)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.join(parts)
	t.links = slices.DeleteFunc(t.links, func(l link) bool {
		err := c.leadsInside(l)
		if err != nil {
			t.skips.add(l.Path, err.Error())
		}
		return err != nil
	})
	return t, nil
}

// join gathers what lies in all the folders.
func (t *tree) join(parts []*part) {
	var files, links int
	for _, one := range parts {
		files += len(one.files)
		links += len(one.links)
	}
	t.files, t.found = make([]file, 0, files), make(map[string]stamp, files+links)
	for _, one := range parts {
		t.files = append(t.files, one.files...)
		t.temps = append(t.temps, one.temps...)
		t.links = append(t.links, one.links...)
		for _, f := range one.files {
			t.found[f.path] = f.stamp
		}
		for i, l := range one.links {
			t.found[l.Path] = one.linked[i]
		}
	}
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

// reason is an error without the path, which is said beside it.
func reason(err error) string { return cause(err).Error() }

func cause(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return of.Err
	}
	if of, ok := errors.AsType[*os.LinkError](err); ok {
		return of.Err
	}
	return err
}
