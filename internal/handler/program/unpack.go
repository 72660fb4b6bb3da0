package program

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed all:shim
var shim embed.FS

// SetupError says that the program cannot be reached through the shim on this machine. Nothing has
// been started then.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return "the Python shim cannot be set up: " + e.Err.Error() }
func (e *SetupError) Unwrap() error { return e.Err }

// maxSocketPath is the longest path that every system takes for a unix socket: 108 bytes with the
// final zero on Linux, 104 elsewhere.
const maxSocketPath = 103

// doors is the private directory of a program: the shim's package and the socket.
type doors struct {
	dir  string
	held *os.File // the lock on it; nil where there are none
}

// places are where the shim can be written to. A read-only root often leaves the last one.
func places() []string {
	return slices.Compact([]string{os.TempDir(), "/tmp", "/dev/shm"})
}

// unpack writes the shim to a directory that only this user can enter, below the first place that allows it.
func unpack(places []string) (*doors, error) {
	var errs []error
	for _, base := range places {
		d, err := unpackBelow(base)
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	return nil, &SetupError{errors.Join(errs...)}
}

func unpackBelow(base string) (*doors, error) {
	base, err := filepath.Abs(base) // the program may run in another directory
	if err != nil {
		return nil, err
	}
	if strings.ContainsRune(base, os.PathListSeparator) {
		return nil, fmt.Errorf("%s: a path with %q cannot stand in PYTHONPATH; set TMPDIR to another one", base, os.PathListSeparator)
	}
	sweep(base)
	dir, err := os.MkdirTemp(base, dirPrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	d := &doors{dir: dir}
	d.lock()
	if err := d.fill(); err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

func (d *doors) fill() error {
	if n := len(d.socket()); n > maxSocketPath {
		return fmt.Errorf("%s: %d bytes are too long for a socket; set TMPDIR to a shorter path", d.socket(), n)
	}
	return fs.WalkDir(shim, "shim", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(d.dir, filepath.FromSlash(name))
		if entry.IsDir() {
			if entry.Name() == "__pycache__" {
				return fs.SkipDir
			}
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			// A file where Python would make its cache directory keeps it from writing one. The
			// usual switch for that would reach the user's own modules too.
			return os.WriteFile(filepath.Join(target, "__pycache__"), nil, 0o600)
		}
		if !strings.HasSuffix(name, ".py") {
			return nil
		}
		text, err := shim.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

func (d *doors) socket() string { return filepath.Join(d.dir, "s") }

// found reports whether a process below the program has imported the shim.
func (d *doors) found() bool {
	if d == nil {
		return false
	}
	_, err := os.Stat(filepath.Join(d.dir, "found"))
	return err == nil
}

func (d *doors) remove() {
	if d == nil {
		return
	}
	removeDir(d.dir)
	_ = d.held.Close()
}

const socketVariable = "RUNPODCTL_WORKER_SOCKET"

// mark is an entry of environment that no other program has.
func (d *doors) mark() string { return socketVariable + "=" + d.socket() }

// environment is env with the shim first on Python's module path.
func (d *doors) environment(env []string) []string {
	path := filepath.Join(d.dir, "shim")
	if old := lookup(env, "PYTHONPATH"); old != "" {
		path += string(os.PathListSeparator) + old
	}
	out := make([]string, 0, len(env)+2)
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); name != "PYTHONPATH" {
			out = append(out, entry)
		}
	}
	return append(out, "PYTHONPATH="+path, d.mark())
}

// lookup finds a variable; the last entry of a name wins, as in os/exec.
func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}
