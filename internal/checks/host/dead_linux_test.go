package host

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
)

// TestDeadStorage_Real mounts a file system whose server never answers, as network storage that is gone.
func TestDeadStorage_Real(t *testing.T) {
	t.Parallel() // it waits for seconds
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		t.Skip("no FUSE for this user:", err)
	}
	require.NoError(t, err)
	b := boxOf(t, files{mountsFile: rootExt4 + volumeNFS, "/runpod-volume/": ""})
	volume := b.at("/runpod-volume")
	err = unix.Mount("dead", volume, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server))
	if err != nil {
		require.NoError(t, unix.Close(server))
		t.Skip("this user must not mount:", err)
	}
	a := newAsker()
	t.Cleanup(func() {
		require.NoError(t, unix.Close(server)) // whoever hangs gets an error now
		require.NoError(t, unix.Unmount(volume, unix.MNT_DETACH))
		place := a.place("/runpod-volume")
		place <- struct{}{} // the last call has come back
	})

	system := fine(b)
	system.asker, system.write, system.temp = a, writeProbe, os.TempDir()
	for range 2 {
		disk := diskCheck{b, configOf("RUNPOD_MIN_DISK_PERCENT=0").MinDiskPercent, a, usage}.run(t.Context())
		require.Equal(t, checks.Warn, disk.Status)
		require.Contains(t, disk.Summary, "/runpod-volume: no answer within 2s")
		require.Equal(t, "no answer within 2s", factsOf(system.run(t.Context()))["runpod_volume_state"])
	}
}
