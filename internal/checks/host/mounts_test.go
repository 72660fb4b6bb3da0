package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMounts(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       mount
		err        bool
	}{
		{
			"a disk", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard",
			mount{"/", "/", []string{"rw", "relatime", "rw", "discard"}, "ext4"},
			false,
		},
		{
			"with optional fields", "36 35 98:0 /sub /mnt ro shared:1 master:2 - xfs /dev/sda rw",
			mount{"/sub", "/mnt", []string{"ro", "rw"}, "xfs"},
			false,
		},
		{
			"a blank and a backslash in the path", `36 35 98:0 / /a\040b\134c rw - tmpfs none rw`,
			mount{"/", `/a b\c`, []string{"rw", "rw"}, "tmpfs"},
			false,
		},
		{
			"a backslash that escapes nothing", `36 35 98:0 / /a\9xyz\ rw - tmpfs none rw`,
			mount{"/", `/a\9xyz\`, []string{"rw", "rw"}, "tmpfs"},
			false,
		},
		{"no file system", "36 35 98:0 / /mnt rw - ", mount{}, true},
		{"no separator", "36 35 98:0 / /mnt rw tmpfs none rw", mount{}, true},
		{"too short", "36 35 - tmpfs none rw", mount{}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mounts, err := parseMounts(tt.line + "\n")
			if tt.err {
				require.ErrorContains(t, err, "cannot read the line")
				return
			}
			require.NoError(t, err)
			require.Equal(t, []mount{tt.want}, mounts)
		})
	}
}

func TestMountAt_TheLastHidesTheOthers(t *testing.T) {
	mounts, err := parseMounts("1 1 0:1 / /v rw - nfs a rw\n2 1 0:2 / /v ro - tmpfs b rw\n")
	require.NoError(t, err)
	m, ok := mountAt(mounts, "/v")
	require.True(t, ok)
	require.Equal(t, "tmpfs", m.kind)
	require.True(t, m.readOnly())
	_, ok = mountAt(mounts, "/")
	require.False(t, ok)
}

func FuzzParseMounts(f *testing.F) {
	f.Add(mountV2)
	f.Add(mountBoth)
	f.Add(`36 35 98:0 / /a\040b\1 rw - tmpfs none rw`)
	f.Fuzz(func(t *testing.T, text string) {
		mounts, err := parseMounts(text)
		if err == nil && text != "" {
			require.NotEmpty(t, mounts)
		}
		for _, m := range mounts {
			require.NotEmpty(t, m.kind)
			require.LessOrEqual(t, len(m.point), len(text))
		}
	})
}
