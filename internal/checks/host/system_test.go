package host

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/checks"
)

// fine is a system that has nothing to complain about, with the given mounts and variables.
func fine(b box, env ...string) system {
	return system{
		box: b, lookup: configOf(env...).Lookup, asker: newAsker(), temp: "/tmp",
		usage: func(string) (space, error) {
			return space{total: 2 * gib, free: gib, inodes: 1000, freeInodes: 500}, nil
		},
		openFiles: func() (uint64, error) { return 1 << 20, nil },
		write:     func(string, int) error { return nil },
	}
}

func TestSystem(t *testing.T) {
	usage := func(shm, root space, err error) func(string) (space, error) {
		return func(path string) (space, error) {
			if filepath.Base(path) == "shm" {
				return shm, err
			}
			return root, nil
		}
	}
	large := space{total: gib, free: gib}
	for _, tt := range []struct {
		name   string
		change func(*system)
		want   string // the finding; empty: none
	}{
		{"all is well", func(*system) {}, ""},
		{"Docker's shared memory", func(s *system) { s.usage = usage(space{total: 64 << 20}, large, nil) }, "/dev/shm has only 64 MB"},
		{"no shared memory", func(s *system) { s.usage = usage(space{}, large, fs.ErrNotExist) }, "there is no /dev/shm"},
		{"broken shared memory", func(s *system) { s.usage = usage(space{}, large, unix.EIO) }, "/dev/shm: input/output error"},
		{"few open files", func(s *system) { s.openFiles = func() (uint64, error) { return 1024, nil } }, "at most 1024 files may be open"},
		{
			"no word about open files", func(s *system) { s.openFiles = func() (uint64, error) { return 0, unix.EPERM } },
			"cannot tell how many files may be open: operation not permitted",
		},
		{
			"no inodes left", func(s *system) { s.usage = usage(large, space{total: gib, inodes: 1000, freeInodes: 10}, nil) },
			"only 10 inodes of / are free (1.0 %)",
		},
		{"a file system without inodes", func(s *system) { s.usage = usage(large, large, nil) }, ""},
		{
			"no temporary files", func(s *system) {
				s.write = func(string, int) error { return &fs.PathError{Op: "open", Path: "/tmp/x", Err: unix.EROFS} }
			},
			"no temporary files in /tmp: read-only file system",
		},
		{"mounts in no known form", func(s *system) {
			require.NoError(t, os.WriteFile(s.box.at(mountsFile), []byte("hello"), 0o644))
		}, "cannot tell what is mounted: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fine(boxOf(t, files{mountsFile: rootExt4}))
			tt.change(&s)
			res := s.run(t.Context())
			if tt.want == "" {
				require.Equal(t, checks.Pass, res.Status, res.Summary)
				require.NotEmpty(t, res.Summary)
				require.Empty(t, res.Remedy)
				return
			}
			require.Equal(t, checks.Warn, res.Status)
			require.Contains(t, res.Summary, tt.want)
			require.NotEmpty(t, res.Remedy)
		})
	}
	t.Run("several findings", func(t *testing.T) {
		s := fine(boxOf(t, files{mountsFile: rootExt4}))
		s.openFiles = func() (uint64, error) { return 256, nil }
		s.write = func(string, int) error { return unix.EACCES }
		res := s.run(t.Context())
		require.Equal(t, "at most 256 files may be open; no temporary files in /tmp: permission denied", res.Summary)
		require.Equal(t, "Start the container with a higher --ulimit nofile.\nMake /tmp writable, or point TMPDIR elsewhere.", res.Remedy)
	})
}

func TestSystem_Volumes(t *testing.T) {
	const id, endpoint = "RUNPOD_VOLUME_ID=vol", "RUNPOD_ENDPOINT_ID=ep"
	volume, folder := "runpod_volume_state", "a folder on the container's disk, not a volume: what is written there ends with the container"
	readOnly := "29 27 0:60 / /runpod-volume ro,relatime - fuse mfs rw\n"
	failing := func(err error) func(string, int) error { return func(string, int) error { return err } }
	for _, tt := range []struct {
		name   string
		mounts string
		files  files
		env    []string
		write  func(string, int) error
		fact   string // empty: no word about volumes
		state  string
		fine   bool
	}{
		{"a plain box", "", nil, nil, nil, "", "", true},
		{"an image that works in /workspace", "", files{"/workspace/": ""}, nil, nil, "", "", true},
		{"an endpoint without a volume", "", nil, []string{endpoint}, nil, "", "", true},
		{"mounted", volumeNFS, files{"/runpod-volume/": ""}, []string{id, endpoint}, nil, volume, "mounted and writable", true},
		{"mounted in a pod", podNFS, files{"/workspace/": ""}, []string{id}, nil, "workspace_state", "mounted and writable", true},
		{"missing", "", nil, []string{id, endpoint}, nil, volume, "missing", false},
		{"missing in a pod", "", nil, []string{id}, nil, "workspace_state", "missing", false},
		{"a plain folder", "", files{"/runpod-volume/": ""}, []string{id, endpoint}, nil, volume, folder, false},
		{"a plain folder that nobody asked for", "", files{"/runpod-volume/": ""}, nil, nil, volume, folder, false},
		{"a plain folder in a pod", "", files{"/workspace/": ""}, []string{id}, nil, "workspace_state", folder, false},
		{"mounted read-only", readOnly, nil, nil, nil, volume, "read-only", false},
		{"read-only at the other end", volumeNFS, nil, nil, failing(&fs.PathError{Err: unix.EROFS}), volume, "read-only", false},
		{"full", volumeNFS, nil, nil, failing(&fs.PathError{Err: unix.ENOSPC}), volume, "full", false},
		{"over its quota", volumeNFS, nil, nil, failing(&fs.PathError{Err: unix.EDQUOT}), volume, "full", false},
		{"somebody else's", volumeNFS, nil, nil, failing(&fs.PathError{Err: unix.EACCES}), volume, "not writable: permission denied", false},
		{"broken", volumeNFS, nil, nil, failing(errors.New("stale handle")), volume, "not writable: stale handle", false},
		{
			"slow", volumeNFS, nil, nil, func(string, int) error { time.Sleep(time.Second); return nil },
			volume, "slow: 512 KB took 1000 ms to write", false,
		},
		{
			"dead", volumeNFS, nil, nil, func(string, int) error { time.Sleep(time.Hour); return nil },
			volume, "no answer within 2s", false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			layout := files{mountsFile: rootExt4 + tt.mounts}
			maps.Copy(layout, tt.files)
			b := boxOf(t, layout)
			synctest.Test(t, func(t *testing.T) {
				s := fine(b, tt.env...)
				if tt.write != nil {
					s.write = func(dir string, bytes int) error {
						if dir == s.temp {
							return nil
						}
						require.Equal(t, probeBytes, bytes)
						return tt.write(dir, bytes)
					}
				}
				res := s.run(t.Context())
				facts := factsOf(res)
				if tt.fact == "" {
					require.NotContains(t, facts, volume)
					require.NotContains(t, facts, "workspace_state")
				} else {
					require.Equal(t, tt.state, facts[tt.fact])
				}
				require.Equal(t, tt.fine, res.Status == checks.Pass, res.Summary)
				if !tt.fine {
					require.Equal(t, checks.Warn, res.Status)
					require.Contains(t, res.Summary, tt.state)
					require.NotEmpty(t, res.Remedy)
				}
				time.Sleep(time.Hour) // who hangs comes back
			})
		})
	}
}

func TestWriteProbe(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes int
	}{{"only a file", 0}, {"half a MB", probeBytes}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, writeProbe(dir, tt.bytes))
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
	require.ErrorIs(t, writeProbe(filepath.Join(t.TempDir(), "none"), 0), fs.ErrNotExist)
}

func TestSystem_Here(t *testing.T) {
	res := System(configOf()).Run(t.Context())
	require.Contains(t, []checks.Status{checks.Pass, checks.Warn}, res.Status)
	require.Positive(t, factsOf(res)["max_open_files"])
}
