package program

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// As long as anything is left of a directory, its lock is, by which a later start knows it.
func TestRemoveDir_TheLockIsLast(t *testing.T) {
	base := t.TempDir()
	left, err := unpackBelow(base)
	require.NoError(t, err)
	require.NoError(t, left.held.Close())
	held := filepath.Join(left.dir, "held") // it cannot be removed now
	require.NoError(t, os.Mkdir(held, 0o700))
	if err := unix.Mount("none", held, "tmpfs", 0, ""); err != nil {
		t.Skipf("this user cannot mount: %v", err)
	}
	removeDir(left.dir)
	require.NoError(t, unix.Unmount(held, 0))
	require.FileExists(t, filepath.Join(left.dir, lockName))
	touch(t, left.dir, time.Now().Add(-time.Hour))
	sweep(base)
	require.NoDirExists(t, left.dir)
}
