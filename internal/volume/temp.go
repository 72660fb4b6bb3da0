package volume

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tempEnd  = ".rpvc.tmp" // the Python class leaves such files alone
	newDir   = 0o755
	nonblock = unix.O_NONBLOCK // a pipe that somebody has put there must not hold us up
)

// temp is a file that has a name of its own until it is whole.
type temp struct {
	root        *os.Root
	name, final string
	file        *os.File
}

func randomName() string { return fmt.Sprintf("%016x", rand.Uint64()) }

func newTemp(root *os.Root, final string, mode os.FileMode) (*temp, error) {
	name := path.Join(path.Dir(final), "."+randomName()+tempEnd)
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	if err != nil {
		return nil, err
	}
	return &temp{root: root, name: name, final: final, file: file}, nil
}

// dress gives the file the attributes of an entry as far as the file system lets us, and closes it.
func (t *temp) dress(e entry) error {
	if e.owned() {
		_ = t.file.Chown(int(e.UID), int(e.GID))
	}
	_ = t.file.Chmod(os.FileMode(e.Mode) & os.ModePerm)
	if err := t.file.Close(); err != nil { // a network file system may say only now that the disk is full
		return err
	}
	when := time.Unix(0, e.nanos())
	_ = t.root.Chtimes(t.name, when, when)
	return nil
}

// finish makes the file what an entry says.
func (t *temp) finish(e entry) error {
	if err := t.dress(e); err != nil {
		return err
	}
	return t.land()
}

// land gives the file its name, in the place of whatever file has it.
func (t *temp) land() error {
	err := t.root.Rename(t.name, t.final)
	if info, statErr := t.root.Lstat(t.final); err != nil && statErr == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, where a file belongs: remove it", filepath.Join(t.root.Name(), t.final))
	}
	return err
}

// drop removes the file, unless it has landed.
func (t *temp) drop() {
	_ = t.file.Close()
	_ = t.root.Remove(t.name)
}

// removeTemps removes what a hydrate that was killed has left behind.
func (c *Cache) removeTemps(t *tree) {
	if len(t.temps) == 0 {
		return
	}
	dirs, err := c.openDirs(nil)
	if err != nil {
		return
	}
	defer dirs.close()
	for _, f := range t.temps {
		root, err := dirs.at(f.dir)
		if err == nil && time.Since(time.Unix(0, f.ctime)) > c.limits.temps {
			_ = root.Remove(f.rel) // the next one tries again
		}
	}
}
