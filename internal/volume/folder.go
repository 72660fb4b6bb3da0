package volume

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// folders opens the folders that files lie in, and keeps the last one open: files come folder by folder.
type folders struct {
	roots  roots
	create bool

	dir  int
	name string
	last *os.Root
}

// of opens the folder of a file. One that has to be made belongs to whom the file belongs to.
func (f *folders) of(dir int, rel string, e entry) (*os.Root, error) {
	name := path.Dir(rel)
	if f.last != nil && f.dir == dir && f.name == name {
		return f.last, nil
	}
	f.close()
	top, err := f.roots.at(dir)
	if err != nil {
		return nil, err
	}
	if f.create {
		if err := makeFolders(top, name, e); err != nil {
			return nil, err
		}
	}
	last, err := top.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	f.dir, f.name, f.last = dir, name, last
	return last, nil
}

func (f *folders) close() {
	if f.last != nil {
		_ = f.last.Close()
		f.last = nil
	}
}

// makeFolders makes a folder, and those on the way to it, for a file.
func makeFolders(root *os.Root, name string, e entry) error {
	if name == "." {
		return nil
	}
	err := root.Mkdir(name, newDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeFolders(root, path.Dir(name), e); err == nil {
			err = root.Mkdir(name, newDir)
		}
	}
	switch {
	case err == nil && e.owned():
		_ = root.Lchown(name, int(e.UID), int(e.GID)) // as far as the file system lets us
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}
