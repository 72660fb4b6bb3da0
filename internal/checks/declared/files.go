package declared

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
)

// fileList is files and folders that must be there.
type fileList []file

type file struct {
	Path      string  `yaml:"path"`
	MinSizeMB float64 `yaml:"min_size_mb"`
	Writable  bool    `yaml:"writable"`
}

// UnmarshalYAML implements yaml.Unmarshaler. An item is a path, or names it among what else must hold.
func (l *fileList) UnmarshalYAML(node *yaml.Node) (err error) {
	*l, err = listOf(node, func(n *yaml.Node) (file, error) {
		f := file{Path: n.Value}
		if n.Kind != yaml.ScalarNode {
			if err := strict(n, &f); err != nil {
				return f, err
			}
		}
		switch {
		case f.Path == "":
			return f, at(n, "files: an entry without a path")
		case !(f.MinSizeMB >= 0): // also what is no number
			return f, at(n, "min_size_mb: want 0 or more, not %v", f.MinSizeMB)
		}
		return f, nil
	})
	return err
}

func (l fileList) run(context.Context, Deps) checks.Result {
	var problems []string
	for _, f := range l {
		if err := f.look(); err != nil {
			problems = append(problems, f.Path+": "+err.Error())
		}
	}
	return failed(problems, "Put the files into the image or onto the volume, and see that the volume is mounted.",
		allOf(len(l), "there"))
}

const mb = 1 << 20

// look says what is wrong with a file.
func (f file) look() error {
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("not there")
	case err != nil:
		return cause(err)
	case f.MinSizeMB > 0 && !info.Mode().IsRegular():
		return errors.New("not a file that has a size")
	case float64(info.Size()) < f.MinSizeMB*mb:
		return fmt.Errorf("%.1f MB, want at least %.1f", float64(info.Size())/mb, f.MinSizeMB)
	case f.Writable && info.IsDir():
		return cause(writableFolder(f.Path))
	case f.Writable && !info.Mode().IsRegular():
		return errors.New("neither a file nor a folder; only these are tried for writable")
	case f.Writable:
		return cause(writableFile(f.Path))
	}
	return nil
}

// writableFile does not wait, whatever has taken the place of the file meanwhile.
func writableFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func writableFolder(path string) error {
	f, err := os.CreateTemp(path, ".runpodctl-worker-*")
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// cause is an error without the path, which is named before it.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}
