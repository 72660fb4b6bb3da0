package volume

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// VC-06: the same with a disk that is really full, where one may be mounted.
func TestFull_Disk(t *testing.T) {
	r := newRig(t)
	mountTmpfs(t, r.volume, "4m")
	r.write("small", "before")
	r.write("large", large("before"))
	r.sync()
	before := image(t, r.dir())
	mirror := image(t, r.mirror())
	r.write("large", strings.Repeat("n", 8<<20))
	_, err := r.cache().Sync(t.Context())
	require.ErrorContains(t, err, "no space left")
	require.Equal(t, mirror, image(t, r.mirror()))
	r.fresh()
	r.hydrate()
	require.Equal(t, before, image(t, r.dir()))
}

// What the directories' disk cannot take ends a hydrate, and leaves nothing half done.
func TestFull_LocalDisk(t *testing.T) {
	r := newRig(t)
	r.write("small", "s")
	r.write("large", strings.Repeat("n", 8<<20))
	r.sync()
	r.fresh()
	require.NoError(t, os.Mkdir(r.dir(), 0o755))
	mountTmpfs(t, r.dir(), "4m")
	_, err := r.cache().Hydrate(t.Context())
	require.ErrorContains(t, err, "no space left")
	for name := range image(t, r.dir()) {
		require.Equal(t, "small", name)
	}
}

// VC-06: a worker whose volume hangs while it syncs waits no longer than the limit. Here it is the disk below the mirror that
// is stopped, where one may do so.
func TestStalledVolume(t *testing.T) {
	r := newRig(t)
	thaw := frozenVolume(t, r.volume, func() {
		r.write("a", "a")
		r.sync()
		r.write("a", "b")
	})
	defer thaw()
	c := r.cache()
	c.limits.stall = 500 * time.Millisecond
	_, err := c.Sync(t.Context())
	require.ErrorIs(t, err, ErrStalled)
}

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
	const mkfs = "/sbin/mkfs.ext4" // which only root has in its path
	out, err := exec.CommandContext(t.Context(), mkfs, "-q", image).CombinedOutput()
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true" {
		t.Skip(mkfs + " is not there")
	}
	require.NoError(t, err, string(out))
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted here: %v: %s", err, out)
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
