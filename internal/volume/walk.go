package volume

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// walk goes through one directory. Several goroutines look at its folders, where most of the time goes when nothing has changed.
type walk struct {
	ctx   context.Context
	pulse *pulse
	skips *skips
	dir   int
	top   string

	helpers chan struct{} // has a place for each goroutine that may be started yet
	running sync.WaitGroup

	mu     sync.Mutex
	parts  []*part
	hidden map[string]error
}

// part is what lies in one folder, but for the folders in it.
type part struct {
	rel    string
	files  []file
	temps  []file
	links  []link
	linked []stamp // of the links
}

// all looks at everything, and returns it folder by folder.
func (w *walk) all(root *os.Root) []*part {
	w.helpers = make(chan struct{}, runtime.NumCPU()-1)
	w.folder(root, "")
	w.running.Wait()
	slices.SortFunc(w.parts, func(a, b *part) int { return cmp.Compare(a.rel, b.rel) })
	return w.parts
}

// folder looks at what lies in a folder. One that cannot be read, or is gone, is left out.
func (w *walk) folder(root *os.Root, rel string) {
	w.pulse.beat()
	self, err := root.Open(".")
	if err != nil {
		w.hide(rel, err)
		return
	}
	defer func() { _ = self.Close() }()
	names, err := self.Readdirnames(-1)
	if err != nil {
		w.hide(rel, err)
	}
	slices.Sort(names)
	into := &part{rel: rel}
	for _, name := range names {
		if w.ctx.Err() != nil {
			return
		}
		w.item(into, root, int(self.Fd()), name)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parts = append(w.parts, into)
}

func (w *walk) item(into *part, root *os.Root, fd int, name string) {
	var st unix.Stat_t
	rel := path.Join(into.rel, name)
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if !errors.Is(err, unix.ENOENT) { // it was there a moment ago
			w.hide(rel, err)
		}
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		w.enter(root, name, rel)
	case unix.S_IFREG:
		w.regular(into, rel, stampOf(&st))
	case unix.S_IFLNK:
		w.link(into, root, name, rel, stampOf(&st))
	default:
		w.skip(rel, errors.New("neither a file nor a link"))
	}
}

// enter looks at a folder, in a goroutine of its own if there is a place for one.
func (w *walk) enter(root *os.Root, name, rel string) {
	inner, err := root.OpenRoot(name)
	if err != nil {
		w.hide(rel, err)
		return
	}
	look := func() {
		defer func() { _ = inner.Close() }()
		w.folder(inner, rel)
	}
	select {
	case w.helpers <- struct{}{}:
		w.running.Go(func() {
			defer func() { <-w.helpers }()
			look()
		})
	default:
		look()
	}
}

func (w *walk) regular(into *part, rel string, s stamp) {
	f := file{w.dir, rel, w.top + "/" + rel, s}
	switch {
	case strings.HasSuffix(rel, tempEnd):
		into.temps = append(into.temps, f)
	case excluded(f.path):
	case unreadable(f.path) != nil:
		w.skip(rel, unreadable(f.path))
	default:
		into.files = append(into.files, f)
	}
}

func (w *walk) link(into *part, root *os.Root, name, rel string, s stamp) {
	l := link{Path: w.top + "/" + rel}
	if excluded(l.Path) {
		return
	}
	var err error
	if l.Target, err = root.Readlink(name); err != nil {
		w.hide(rel, err)
		return
	}
	if err := cmp.Or(unreadable(l.Path), unreadable(l.Target)); err != nil {
		w.skip(rel, err)
		return
	}
	into.links, into.linked = append(into.links, l), append(into.linked, s)
}

func (w *walk) skip(rel string, err error) { w.skips.add(path.Join(w.top, rel), reason(err)) }

// hide notes what could not be looked at. What lies there is not gone.
func (w *walk) hide(rel string, err error) {
	w.skip(rel, err)
	if hides(err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hidden[path.Join(w.top, rel)] = err
	}
}
