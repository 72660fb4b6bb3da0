package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dirPrefix = "runpodctl-journal-"
	lockName  = "lock"

	// A process that was killed may take a moment to be gone, and its lock with it.
	lockWait  = time.Second
	lockPause = 20 * time.Millisecond

	// The journals of workers that are gone: after a day the platform has forgotten their jobs.
	maxAge    = 24 * time.Hour
	maxOthers = 16
)

var errBusy = errors.New("another worker with this id uses it")

// claim makes the directory of a journal this process's own. The lock goes with the process, however that ends, and is not
// inherited by its children.
func claim(dir string) (*os.File, error) {
	for begin := time.Now(); ; time.Sleep(lockPause) {
		lock, err := tryClaim(dir)
		switch {
		case err == nil:
			return lock, nil
		case !errors.Is(err, errBusy):
			return nil, fmt.Errorf("%s: %w", dir, err)
		case time.Since(begin) > lockWait:
			return nil, fmt.Errorf("%s: %w", dir, errBusy)
		}
	}
}

func tryClaim(dir string) (*os.File, error) {
	if err := makePrivate(dir); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err = hold(lock); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return lock, nil
}

// hold locks a file that still lies where it was opened: one that was removed meanwhile locks nobody out.
func hold(lock *os.File) error {
	err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errBusy
	}
	if err != nil {
		return err
	}
	there, err := os.Stat(lock.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return errBusy
	}
	if err != nil {
		return err
	}
	held, err := lock.Stat()
	if err == nil && !os.SameFile(there, held) {
		return errBusy
	}
	return err
}

// sweep removes the journals of other workers in a place that no process will ask for: those of another boot, the old ones, and all
// but the newest few.
func sweep(place, own string) {
	entries, _ := os.ReadDir(place) // it was just used
	var others []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.IsDir() && strings.HasPrefix(info.Name(), dirPrefix) && info.Name() != filepath.Base(own) {
			others = append(others, info)
		}
	}
	slices.SortFunc(others, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for i, info := range others {
		if i >= maxOthers || time.Since(info.ModTime()) > maxAge || !strings.HasSuffix(info.Name(), bootSuffix()) {
			removeAbandoned(filepath.Join(place, info.Name()))
		}
	}
}

// removeAbandoned removes a journal unless a process has it.
func removeAbandoned(dir string) {
	// Where there is no lock, somebody was killed while he removed the rest.
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }()
	if hold(lock) == nil {
		_ = os.RemoveAll(dir) // the next start tries again
	}
}
