package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Where journals lie, unless somebody says otherwise.
const (
	ownName   = "runpodctl-worker"
	tempName  = "runpodctl-state-" // with the user's id, since many share a temporary directory
	systemDir = "/var/lib"
	bootFile  = "/proc/sys/kernel/random/boot_id"
)

const private = 0o700

// Places are the directories for journals, the best first. stateHome is $XDG_STATE_HOME.
func Places(stateHome string) []string {
	var places []string
	for _, place := range []string{
		filepath.Join(stateHome, ownName),
		filepath.Join(systemDir, ownName),
		filepath.Join(os.TempDir(), tempName+strconv.Itoa(os.Getuid())),
	} {
		if filepath.IsAbs(place) { // never in the working directory, which may be anything
			places = append(places, place)
		}
	}
	return places
}

// answerTime is how long the file system of a place may take to say what it is. That of a server that has gone says nothing, for
// ever, and whoever asked it cannot be interrupted.
const answerTime = 2 * time.Second

var errSilent = errors.New("its file system does not answer")

// answering looks at a place with a function that may hang; then that is left alone.
func answering(place string, look func(string) error) error {
	answer := make(chan error, 1)
	go func() { answer <- look(place) }()
	select {
	case err := <-answer:
		return err
	case <-time.After(answerTime):
		return fmt.Errorf("%s: %w", place, errSilent)
	}
}

// prepare makes a place, if it is local and nobody else can get at it.
func prepare(place string) error {
	if err := local(existing(place)); err != nil {
		return fmt.Errorf("%s: %w", place, err)
	}
	if err := os.MkdirAll(place, private); err != nil {
		return err
	}
	info, err := os.Stat(place)
	if err != nil {
		return err
	}
	return trusted(place, info)
}

// existing is the part of a path that is there.
func existing(path string) string {
	for {
		if _, err := os.Stat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// trusted tells whether nobody else can put something else in the place of what is in a directory.
func trusted(path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.IsDir():
		return fmt.Errorf("%s is no directory", path)
	case owner.Uid != 0 && int(owner.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%s: other users can write to it", path)
	}
	return nil
}

// dirName is that of a worker's journal on this boot.
func dirName(worker string) string {
	sum := sha256.Sum256([]byte(worker)) // an id can be anything
	return fmt.Sprintf("%s%x%s", dirPrefix, sum[:8], bootSuffix())
}

func bootSuffix() string {
	id, err := os.ReadFile(bootFile)
	if err != nil {
		return "-unknown"
	}
	return "-" + strings.TrimSpace(string(id))
}

// makePrivate makes the directory of a journal, or sees that the one that is there is our own.
func makePrivate(dir string) error {
	err := os.Mkdir(dir, private)
	if err == nil || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a directory of this user", dir)
	}
	return os.Chmod(dir, private)
}
