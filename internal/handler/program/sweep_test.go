package program

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a killed process left is removed at a later start, and nothing else.
func TestSweep(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, dir string)
		stays  bool
	}{
		{"its process is gone", nil, false},
		{"its process was killed", func(t *testing.T, dir string) { holder(t, dir)() }, false},
		{"its process lives", func(t *testing.T, dir string) { t.Cleanup(holder(t, dir)) }, true},
		{"it is new", func(t *testing.T, dir string) { touch(t, dir, time.Now()) }, true},
		{"it has no lock", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, lockName)))
			touch(t, dir, time.Now().Add(-time.Hour))
		}, true},
		{"its process was killed before it had the lock", func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o700))
			touch(t, dir, time.Now().Add(-time.Hour))
		}, false},
		{"its lock is a link", func(t *testing.T, dir string) {
			lock := filepath.Join(dir, lockName)
			require.NoError(t, os.Rename(lock, lock+"2"))
			require.NoError(t, os.Symlink(lock+"2", lock))
			touch(t, dir, time.Now().Add(-time.Hour))
		}, true},
		{"it has another name", func(t *testing.T, dir string) {
			other := filepath.Join(filepath.Dir(dir), "other")
			require.NoError(t, os.Rename(dir, other))
			require.NoError(t, os.Symlink(other, dir))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := t.TempDir()
			left, err := unpackBelow(base)
			require.NoError(t, err)
			require.NoError(t, left.held.Close()) // as the end of the process does
			touch(t, left.dir, time.Now().Add(-time.Hour))
			if tt.change != nil {
				tt.change(t, left.dir)
			}
			next, err := unpackBelow(base)
			require.NoError(t, err)
			require.DirExists(t, next.dir)
			_, err = os.Stat(left.dir)
			require.Equal(t, tt.stays, err == nil)
			touch(t, next.dir, time.Now().Add(-time.Hour))
			sweep(base)
			require.DirExists(t, next.dir, "of this process")
			next.remove()
			require.NoDirExists(t, next.dir)
		})
	}
}

func touch(t *testing.T, dir string, when time.Time) {
	t.Helper()
	require.NoError(t, os.Chtimes(dir, when, when))
}

// holder runs a process that holds the lock, and returns what kills it.
func holder(t *testing.T, dir string) func() {
	t.Helper()
	cmd := exec.Command("python3", "-c", "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); "+
		"fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); print('held', flush=True); time.sleep(60)", filepath.Join(dir, lockName))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}
