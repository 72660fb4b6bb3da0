package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A disk that cannot take what the mirror holds costs one warning and a cold start: the room is given back, and the mirror stays whole.
func TestRunOnADiskThatIsFull(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.fresh()
	const size = "SIZE=8000000"
	first := s.worker([]string{size})
	s.ask(first, "first", `{}`)
	s.stop(first)
	before, err := os.ReadFile(s.manifest)
	require.NoError(t, err)

	s.fresh()
	if err := unix.Mount("tmpfs", s.models, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(s.models, 0)) })
	w := s.worker([]string{"SIZE=1000"})
	s.ask(w, "second", `{}`)
	s.stop(w)
	require.Contains(t, w.stderr.String(), "not everything could be hydrated")
	require.Contains(t, w.stderr.String(), "no space left on device")
	after, err := os.ReadFile(s.manifest)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
	require.NoDirExists(t, filepath.Join(s.models, "ep"))
	require.False(t, beingWritten(s.models))
}
