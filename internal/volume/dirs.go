package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checkNamespace refuses what is not the name of one folder.
func checkNamespace(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("the namespace of the cache must be the name of one folder, not %q", name)
	}
	return nil
}

// resolveDirs makes the directories absolute and resolves their links. One that lies in another is left out.
func resolveDirs(dirs []string) ([]string, error) {
	var all []string
	for _, dir := range dirs {
		resolved, err := resolve(dir)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the cache directory %s: %w", dir, err)
		case resolved == "/":
			return nil, fmt.Errorf("the cache directory %s is the root of the file system: name the folders that are to be kept", dir)
		}
		all = append(all, resolved)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(slices.Clone(all), func(inner string) bool {
		return slices.ContainsFunc(all, func(outer string) bool { return inner != outer && within(inner, outer) })
	}), nil
}

// apart returns an error where a directory and the volume lie in each other: the mirror would hold itself.
func apart(dirs []string, volume string) error {
	for _, dir := range dirs {
		if within(dir, volume) || within(volume, dir) {
			return fmt.Errorf("the cache directory %s and the volume %s lie in each other: what is on the volume needs no cache", dir, volume)
		}
	}
	return nil
}

// resolve is the real path of something that may not be there yet.
func resolve(path string) (string, error) { return resolveVia(path, maxLinks) }

// maxLinks bounds how many links to nothing may lead to one another.
const maxLinks = 40

func resolveVia(path string, links int) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%q is no path", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return resolved, err
	}
	parent, err := resolveVia(filepath.Dir(path), links)
	if err != nil {
		return "", err
	}
	path = filepath.Join(parent, filepath.Base(path))
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path, nil //nolint:nilerr // it is not there
	}
	target, err := os.Readlink(path)
	switch {
	case err != nil:
		return "", err
	case links == 0:
		return "", errors.New("too many links")
	case !filepath.IsAbs(target):
		target = filepath.Join(parent, target)
	}
	return resolveVia(target, links-1)
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// locate finds the directory that a path lies in.
func (c *Cache) locate(path string) (dir int, rel string, ok bool) {
	for i, dir := range c.dirs {
		if rel, ok := strings.CutPrefix(path, dir+"/"); ok {
			return i, rel, true
		}
	}
	return 0, "", false
}

// openDirs opens the directories, and makes those of some numbers; others that are not there are nil. A file in the place of one
// holds nothing that could be cached, and is in nobody's way.
func (c *Cache) openDirs(create map[int]bool) (roots, error) {
	all := make(roots, len(c.dirs))
	for i, dir := range c.dirs {
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			c.say("warn", dir+" is no directory and is not cached")
			continue
		}
		if create[i] {
			if err := os.MkdirAll(dir, newDir); err != nil {
				all.close()
				return nil, err
			}
		}
		root, err := os.OpenRoot(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all.close()
			return nil, err
		}
		all[i] = root
	}
	return all, nil
}

// roots are open directories. Nothing outside them can be reached through one.
type roots []*os.Root

// at is one of them, which may be gone by now.
func (r roots) at(dir int) (*os.Root, error) {
	if r[dir] == nil {
		return nil, fs.ErrNotExist
	}
	return r[dir], nil
}

// none tells whether not one of them is there.
func (r roots) none() bool {
	return !slices.ContainsFunc(r, func(root *os.Root) bool { return root != nil })
}

func (r roots) close() {
	for _, root := range r {
		if root != nil {
			_ = root.Close()
		}
	}
}
