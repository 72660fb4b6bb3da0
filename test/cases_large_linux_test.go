package test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// On a disk that is full large results are kept in memory, and delivered, with one warning.
func TestLargeResults_FullDisk(t *testing.T) {
	const bytes = 8_000_000
	state := t.TempDir()
	if err := syscall.Mount("tmpfs", state, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		t.Skipf("no disk that is so small: %v; TestSpooler_FullDisk has one in memory", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(state, 0)) })
	d := apidouble.New(t)
	w := runWorker(t, d, "large_async.py", nil, "--state-dir", state)
	for _, id := range []string{"a", "b"} {
		d.Offer(largeJob(id, bytes))
		eventually(t, func() bool { return len(w.results(id)) > 0 }, "no result of %s", id)
		requireLarge(t, bytes, w.results(id)[0])
	}
	require.Empty(t, spooled(t, state))
	require.Equal(t, 1, strings.Count(w.stderr.String(), "Large results are kept in memory"))
	require.Equal(t, 1, strings.Count(w.stderr.String(), "The journal cannot be written"))
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
}
