package volume

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whether the file system here can share blocks or not: there is all of it or nothing.
func TestClone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "from")
	require.NoError(t, os.WriteFile(path, []byte(large("x")), 0o644))
	from, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	to, err := os.Create(filepath.Join(dir, "to"))
	require.NoError(t, err)
	defer func() { require.NoError(t, to.Close()) }()
	want := ""
	if clone(to, from) {
		want = large("x")
	}
	require.Equal(t, want, read(t, to.Name()))
	size, sum, err := copyAll(t.Context(), &pulse{}, to, from)
	require.NoError(t, err)
	require.EqualValues(t, len(large("x")), size)
	require.Equal(t, sumOf(large("x")), sumText(sum))
	require.Equal(t, large("x"), read(t, to.Name()))
}

// Folders that a hydrate has to make belong to whom the files in them belong to.
func TestHydrate_OwnerOfFolders(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give files away")
	}
	for name, content := range map[string]string{"small": "s", "large": large("l")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			path := r.write("a/b/"+name, content)
			require.NoError(t, os.Chown(path, 1234, 5678))
			r.sync()
			r.fresh()
			require.NoError(t, os.Mkdir(r.dir(), 0o755))
			r.hydrate()
			for _, name := range []string{"a", "a/b", "a/b/" + name} {
				info, err := os.Stat(filepath.Join(r.dir(), name))
				require.NoError(t, err)
				st, ok := info.Sys().(*syscall.Stat_t)
				require.True(t, ok)
				require.Equal(t, []uint32{1234, 5678}, []uint32{st.Uid, st.Gid}, name)
			}
		})
	}
}
