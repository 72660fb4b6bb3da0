package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// checkDropped returns an error if the next manifest would lose a file that is not here only because this process may not put it
// here, or may not see it: for other workers it is as good as before.
func (c *Cache) checkDropped(t *tree, known map[string]known) error {
	var gone []string
	for name := range known {
		_, here := t.found[name]
		_, _, cached := c.locate(name)
		if !here && cached && !excluded(name) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	last := ""
	for _, name := range gone {
		folder := filepath.Dir(name)
		if folder == last {
			continue
		}
		if err := accessible(folder); err != nil {
			return wouldLose(name, err)
		}
		last = folder
	}
	return nil
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
	return fmt.Errorf("the mirror would lose %s, which this user may not read or write (%w): run as the user whose files these are, or let it have them", name, err)
}

// leave notes a file that cannot be copied. One that the mirror has must not get lost because this process may not read it.
func (u *upload) leave(name string, err error) error {
	if _, known := u.plan.known[name]; known && errors.Is(err, fs.ErrPermission) {
		return wouldLose(name, err)
	}
	u.tree.skips.add(name, reason(err))
	return nil
}
