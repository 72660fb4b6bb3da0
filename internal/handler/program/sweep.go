package program

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	dirPrefix = "runpodctl-worker-"
	lockName  = "lock"
	// sweepAge is how old a directory must be before it is taken for a leftover: between the making of a
	// directory and the lock on it there is a moment.
	sweepAge = time.Minute
)

// lock marks the directory as that of a living process: the lock goes with the process, however that
// ends. A process id in the name would say less, since containers that share a directory count their
// own. Where a file system has no locks, nothing is ever swept.
func (d *doors) lock() {
	file, err := os.OpenFile(filepath.Join(d.dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		d.held = file
		_ = flock(file)
	}
}

func flock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sweep removes what processes that were killed left of theirs in a directory. What cannot be looked at
// or removed is somebody else's.
func sweep(base string) {
	entries, _ := os.ReadDir(base) // a directory of others may not be for us to read
	for _, entry := range entries {
		if dir := filepath.Join(base, entry.Name()); strings.HasPrefix(entry.Name(), dirPrefix) && leftOver(dir) {
			removeDir(dir)
		}
	}
}

// removeDir removes the directory of a program, the lock last: should this process be killed meanwhile, the next one knows by it
// that the rest is to be removed.
func removeDir(dir string) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	if err == nil {
		_ = os.RemoveAll(dir)
	}
}

func leftOver(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < sweepAge {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return false
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		_ = os.Remove(dir) // which fails unless it is empty: its process was killed before it had the lock
		return false
	}
	defer func() { _ = file.Close() }()
	return flock(file) == nil
}
