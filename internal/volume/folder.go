package volume

import (
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

// of opens the folder of a file.
func (f *folders) of(dir int, rel string) (*os.Root, error) {
	name := path.Dir(rel)
	if f.last != nil && f.dir == dir && f.name == name {
		return f.last, nil
	}
	f.close()
	top, err := f.roots.at(dir)
	if err != nil {
		return nil, err
	}
	if f.create && name != "." {
		if err := top.MkdirAll(name, newDir); err != nil {
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
