package volume

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// linkRounds bounds how many links may lead to one another.
const linkRounds = 8

var (
	errNothing = errors.New("a link to nothing")
	errOutside = errors.New("a link that leads out")
)

// leadsInside returns an error unless a link ends at something in the directories, whatever other links there are on the way.
func (c *Cache) leadsInside(l link) error {
	target := l.Target
	if !filepath.IsAbs(target) {
		target = path.Dir(l.Path) + "/" + target // not joined: ".." after a link is not the folder before it
	}
	end, err := follow(target)
	if errors.Is(err, fs.ErrNotExist) {
		return errNothing
	}
	if errors.Is(err, errProcess) {
		return errOutside
	}
	if err != nil {
		return errors.New("a link that cannot be followed")
	}
	for _, dir := range c.dirs {
		if within(end, dir) {
			return nil
		}
	}
	return errOutside
}

// maxFollowed bounds how many links may lie on the way to a file, as in the standard library.
const maxFollowed = 255

// processes is where links mean something else to each process.
const processes = "/proc"

var errProcess = errors.New("a link of a process")

// follow is the real path of something, as filepath.EvalSymlinks tells it, but of nothing to which a link of a process leads.
func follow(name string) (string, error) {
	end, rest, followed := "/", strings.Split(name, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		next := path.Join(end, part)
		info, err := os.Lstat(end + "/" + part) // not joined: it must be a folder that ".." is in
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			end = next
			continue
		}
		if followed++; followed > maxFollowed {
			return "", errors.New("too many links")
		}
		if within(next, processes) {
			return "", errProcess
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			end = "/"
		}
		rest = slices.Concat(strings.Split(target, "/"), rest)
	}
	return end, nil
}

// check tells whether a link can be one that a sync has written.
func (l link) check() error {
	if l.Target == "" || len(l.Target) >= maxPath || strings.ContainsRune(l.Target, 0) {
		return errors.New("not the target of a link")
	}
	return sane(l.Path)
}

// makeLinks makes the links of the manifest where there is nothing yet. A link to a link has to wait for it.
func (d *download) makeLinks(ctx context.Context, links []link) error {
	parents := &folders{roots: d.dirs, create: true}
	defer parents.close()
	for round := range linkRounds {
		var later []link
		for _, l := range links {
			if err := ctx.Err(); err != nil {
				return err
			}
			d.pulse.beat()
			err := d.makeLink(parents, l)
			switch {
			case err == nil:
				d.links++
			case errors.Is(err, errNothing) && round < linkRounds-1:
				later = append(later, l)
			default:
				d.left.add(l.Path, reason(err))
			}
		}
		links = later
	}
	return nil
}

func (d *download) makeLink(parents *folders, l link) error {
	if err := l.check(); err != nil {
		return err
	}
	dir, rel, cached := d.cache.locate(l.Path)
	if !cached || excluded(l.Path) {
		return errors.New("it is not in a directory that is cached")
	}
	parent, err := parents.of(dir, rel, entry{})
	if err != nil {
		return err
	}
	if err := d.cache.leadsInside(l); err != nil {
		return err
	}
	return parent.Symlink(l.Target, path.Base(rel))
}
