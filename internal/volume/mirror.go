package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	cacheFolder = ".cache"
	sharedDir   = 0o777 // of folders in a mirror, less the umask: workers may run as different users
)

// mounted tells whether there is a volume.
func mounted(volume string) error {
	var there, root unix.Stat_t
	err := unix.Stat(volume, &there)
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && there.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s: %w", volume, ErrNoVolume)
	case err != nil:
		return fmt.Errorf("look at the volume %s: %w", volume, err)
	}
	if unix.Stat("/", &root) == nil && root.Dev == there.Dev {
		return &NotMounted{volume}
	}
	return nil
}

// mirrorPath is where the mirror lies.
func (c *Cache) mirrorPath() string {
	return filepath.Join(c.opts.Volume, cacheFolder, c.opts.Namespace)
}

// openMirror opens the folder of the mirror, or makes it. None of its own folders may be a link, which could lead anywhere.
func (c *Cache) openMirror(create bool) (*os.Root, error) {
	err := mounted(c.opts.Volume)
	var unmounted *NotMounted
	if err != nil && !errors.As(err, &unmounted) {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(c.opts.Volume) // only now, since it may hang
	if err != nil {
		return nil, err
	}
	if err := apart(c.dirs, resolved); err != nil {
		return nil, err
	}
	volume, err := os.OpenRoot(resolved)
	if err != nil {
		return nil, err
	}
	defer func() { _ = volume.Close() }()
	cache, err := openFolder(volume, cacheFolder, create)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cache.Close() }()
	return openFolder(cache, c.opts.Namespace, create)
}

func openFolder(parent *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := parent.Mkdir(name, sharedDir); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	info, err := parent.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a %s, where a folder belongs", filepath.Join(parent.Name(), name), kind(info.Mode()))
	}
	return parent.OpenRoot(name)
}

func kind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "folder"
	default:
		return "special file"
	}
}

// mirror is an open mirror and what it is said to hold.
type mirror struct {
	root, big *os.Root // big is nil if it is not there
	manifest  *manifest
}

// openToRead opens a mirror and its manifest. The manifest is nil if there is none that can be read; so is the mirror if it is not there.
func (c *Cache) openToRead() (*mirror, error) {
	root, err := c.openMirror(false)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNoVolume) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c.fill(root, false)
}

// noMirror is what there is to say to those who want one that is there.
func (c *Cache) noMirror() error { return fmt.Errorf("there is no mirror at %s yet", c.mirrorPath()) }

// openToWrite opens a mirror, or makes one.
func (c *Cache) openToWrite() (*mirror, error) {
	root, err := c.openMirror(true)
	if err != nil {
		return nil, err
	}
	return c.fill(root, true)
}

func (c *Cache) fill(root *os.Root, create bool) (*mirror, error) {
	m := &mirror{root: root}
	var err error
	m.big, err = openFolder(root, bigName, create)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.close()
		return nil, err
	}
	if err := m.reread(c); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// reread reads the manifest. One that makes no sense counts as none, as in the Python class: the next sync writes a new one.
func (m *mirror) reread(c *Cache) error {
	var err error
	m.manifest, err = readManifest(m.root)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errManifest):
		c.say("warn", fmt.Sprintf("the cache of %s counts as empty: %s", c.mirrorPath(), err))
		return nil
	default:
		return err
	}
}

// replaced tells whether another manifest has been written since this one was read.
func (m *mirror) replaced() bool {
	info, err := m.root.Lstat(manifestName)
	return err == nil && !info.ModTime().Equal(m.manifest.written)
}

func (m *mirror) close() {
	_ = m.root.Close()
	if m.big != nil {
		_ = m.big.Close()
	}
}

// bigFile is where a large file lies below the big folder.
func bigFile(path string) string { return strings.TrimPrefix(path, "/") }

// archive tells what an archive is like now.
func (m *mirror) archive(name string) archive {
	info, err := m.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return archive{}
	}
	return archive{info.Size(), info.ModTime().UnixNano()}
}
