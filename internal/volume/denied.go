package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// checkDropped returns an error if the next manifest would lose a file or link that is not here only because this process may not put
// it here, or cannot see it: for other workers it is as good as before.
func (c *Cache) checkDropped(p *pulse, t *tree, m *mirror) error {
	last := ""
	for _, name := range c.dropped(t, m) {
		p.beat()
		if err := t.hiding(name); err != nil {
			return wouldLose(name, err)
		}
		if folder := filepath.Dir(name); folder != last {
			if err := accessible(folder); err != nil {
				return wouldLose(name, err)
			}
			last = folder
		}
		if err := m.readable(name); errors.Is(err, fs.ErrPermission) {
			return wouldLose(name, err)
		}
	}
	return nil
}

// dropped are the files and links of the mirror that are not here, or that are older here, sorted.
func (c *Cache) dropped(t *tree, m *mirror) []string {
	if m.manifest == nil {
		return nil
	}
	var gone []string
	add := func(name string) {
		if _, _, cached := c.locate(name); cached && !excluded(name) {
			gone = append(gone, name)
		}
	}
	for name, k := range m.manifest.files {
		if here, ok := t.found[name]; !ok || !here.link && k.replaces(here) {
			add(name)
		}
	}
	for _, l := range m.manifest.Links {
		if _, ok := t.found[l.Path]; !ok {
			add(l.Path)
		}
	}
	slices.Sort(gone)
	return gone
}

// hides tells whether an error says nothing of what is there: this process may not see it, or cannot just now.
func hides(err error) bool { return errors.Is(err, fs.ErrPermission) || lasts(err) }

// hiding is why a path, or a folder that it lies in, could not be looked at.
func (t *tree) hiding(name string) error {
	for hidden, err := range t.hidden {
		if within(name, hidden) {
			return err
		}
	}
	return nil
}

// readable returns an error unless this process may read what the mirror has of a large file.
func (m *mirror) readable(name string) error {
	if k, ok := m.manifest.files[name]; !ok || k.packed {
		return nil
	}
	file, _, err := openRegular(m.big, bigFile(name))
	if err == nil {
		_ = file.Close()
	}
	return err
}

// accessible returns an error unless this process may see and make files in a folder, or make the folder.
func accessible(folder string) error {
	for {
		err := unix.Faccessat(unix.AT_FDCWD, folder+"/.", unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) {
			return err
		}
		folder = filepath.Dir(folder)
	}
}

func wouldLose(name string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the mirror would lose %s, which this user may not read or write (%w): run as the user whose files these are, or let it have them", name, cause(err))
	}
	return fmt.Errorf("the mirror would lose %s, which cannot be read or written here: %w", name, cause(err))
}

// leave notes a file that cannot be copied. One that the mirror has must not get lost because this process may not read it, or cannot just now.
func (u *upload) leave(name string, err error) error {
	if _, known := u.plan.known[name]; known && hides(err) {
		return wouldLose(name, err)
	}
	u.tree.skips.add(name, reason(err))
	return nil
}
