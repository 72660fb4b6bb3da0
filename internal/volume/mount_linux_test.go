package volume

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a small disk, if this process may.
func mountTmpfs(t *testing.T, at, size string) {
	t.Helper()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(at, 0)) })
}

// frozenVolume mounts a disk at a folder, lets somebody write to it, and stops it: whoever writes then waits until it is thawed.
func frozenVolume(t *testing.T, at string, fill func()) (thaw func()) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "disk")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 16<<20))
	for _, command := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("no disk can be made here: %v: %s", err, out)
		}
	}
	t.Cleanup(func() { // what was left behind has to let go of it first
		require.Eventually(t, func() bool { return unix.Unmount(at, 0) == nil }, time.Minute, 10*time.Millisecond)
	})
	fill()
	folder, err := os.Open(at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = folder.Close() })
	const freeze, unfreeze = 0xC0045877, 0xC0045878 // FIFREEZE and FITHAW
	require.NoError(t, unix.IoctlSetInt(int(folder.Fd()), freeze, 0))
	return func() { require.NoError(t, unix.IoctlSetInt(int(folder.Fd()), unfreeze, 0)) }
}
