package host

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

const (
	rootExt4    = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
	rootOverlay = "27 1 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u\n"
	hostsFile   = "28 27 259:1 /docker/abc/hosts /etc/hosts rw - xfs /dev/nvme0n1 rw\n"
	volumeNFS   = "29 27 0:60 / /runpod-volume rw,relatime - fuse mfs rw\n"
	podNFS      = "30 27 0:61 / /workspace rw,relatime - nfs4 store:/v rw\n"
)

// spaces are the file systems of a machine: GB free, of GB.
type spaces map[string][2]float64

func (s spaces) usage(root string) func(string) (space, error) {
	return func(path string) (space, error) {
		for name, gb := range s {
			if path == (box{root}).at(name) {
				return space{free: uint64(gb[0] * gib), total: uint64(gb[1] * gib)}, nil
			}
		}
		return space{}, errors.New("no such file system")
	}
}

func TestDisk(t *testing.T) {
	for _, tt := range []struct {
		name    string
		mounts  string
		spaces  spaces
		env     []string
		want    checks.Status
		summary string
		said    string
	}{
		{
			"a fresh container", rootExt4,
			spaces{"/": {19.78, 20}},
			nil,
			checks.Pass, "19.8 GB free of 20.0 GB (98.9 %)", "Disk space check passed: 19.78GB free (98.9% available)",
		},
		{
			"a full one", rootExt4,
			spaces{"/": {1, 20}},
			nil,
			checks.Fail, "1.0 GB free of 20.0 GB (5.0 %)", "Insufficient disk space: 1.00GB free (5.0%), 10.0% required",
		},
		{
			"a large disk with a small share free, by default", rootExt4,
			spaces{"/": {800, 10000}},
			nil,
			checks.Pass, "800.0 GB free of 10000.0 GB (8.0 %)", "Disk space check passed: 800.00GB free (8.0% available)",
		},
		{
			"a large disk with a small share free, and somebody asks for more", rootExt4,
			spaces{"/": {800, 10000}},
			[]string{"RUNPOD_MIN_DISK_PERCENT=10"},
			checks.Fail, "800.0 GB free of 10000.0 GB (8.0 %)", "Insufficient disk space: 800.00GB free (8.0%), 10.0% required",
		},
		{
			"a little is enough for whoever says so", rootExt4,
			spaces{"/": {1, 20}},
			[]string{"RUNPOD_MIN_DISK_PERCENT=5"},
			checks.Pass, "1.0 GB free of 20.0 GB (5.0 %)", "Disk space check passed: 1.00GB free (5.0% available)",
		},
		{
			"volumes beside it", rootExt4 + volumeNFS + podNFS,
			spaces{"/": {15, 20}, "/runpod-volume": {90, 100}, "/workspace": {50, 60000}},
			nil,
			checks.Pass, "15.0 GB free of 20.0 GB (75.0 %)", "Disk space check passed: 15.00GB free (75.0% available)",
		},
		{
			"a full volume", rootExt4 + volumeNFS,
			spaces{"/": {15, 20}, "/runpod-volume": {0.5, 100}},
			[]string{"RUNPOD_MIN_DISK_PERCENT=20"},
			checks.Warn, "15.0 GB free of 20.0 GB (75.0 %); /runpod-volume: 512 MB free of 100.0 GB (0.5 %)", "Disk space check passed: 15.00GB free (75.0% available)",
		},
		{
			"a full volume beside a full disk", rootExt4 + volumeNFS,
			spaces{"/": {0, 20}, "/runpod-volume": {0.5, 100}},
			nil,
			checks.Fail, "0 MB free of 20.0 GB (0.0 %); /runpod-volume: 512 MB free of 100.0 GB (0.5 %)", "Insufficient disk space: 0.00GB free (0.0%), 10.0% required",
		},
		{
			"a volume with an error", rootExt4 + volumeNFS,
			spaces{"/": {15, 20}},
			nil,
			checks.Warn, "15.0 GB free of 20.0 GB (75.0 %); /runpod-volume: no such file system", "Disk space check passed: 15.00GB free (75.0% available)",
		},
		{"no answer for /", rootExt4, spaces{}, nil, checks.Error, "cannot tell how much of / is free: no such file system", ""},
		{"nonsense for /", rootExt4, spaces{"/": {2, 1}}, nil, checks.Error, "cannot tell how much of / is free: 2147483648 bytes free of 1073741824", ""},
		{"an empty file system", rootExt4, spaces{"/": {0, 0}}, nil, checks.Error, "cannot tell how much of / is free: 0 bytes free of 0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := boxOf(t, files{mountsFile: tt.mounts})
			min := configOf(tt.env...).MinDiskPercent
			res := diskCheck{b, min, newAsker(), tt.spaces.usage(b.root)}.run(t.Context())
			require.Equal(t, tt.want, res.Status, res.Summary)
			require.Equal(t, tt.summary, res.Summary)
			require.Equal(t, tt.said, res.Said)
			require.Equal(t, tt.want == checks.Pass, res.Remedy == "")
		})
	}
}

func TestDisk_ShowsEachPath(t *testing.T) {
	b := boxOf(t, files{mountsFile: rootExt4 + volumeNFS})
	s := spaces{"/": {15, 20}, "/runpod-volume": {90, 100}, "/workspace": {1, 1}}
	res := diskCheck{b, configOf().MinDiskPercent, newAsker(), s.usage(b.root)}.run(t.Context())
	require.Equal(t, map[string]any{
		"total_gb": 20.0, "free_gb": 15.0, "free_percent": 75.0, "file_system": "ext4",
		"runpod_volume_total_gb": 100.0, "runpod_volume_free_gb": 90.0, "runpod_volume_free_percent": 90.0,
	}, factsOf(res), "a /workspace that is no mount is part of /")
	require.Equal(t, "at least 10 % of / free, or 50.0 GB", res.Threshold.Text)
	exact := diskCheck{b, configOf("RUNPOD_MIN_DISK_PERCENT=12.5").MinDiskPercent, newAsker(), s.usage(b.root)}.run(t.Context())
	require.Equal(t, "at least 12.5 % of / free", exact.Threshold.Text)
}

func TestDisk_WhoseFigures(t *testing.T) {
	for _, tt := range []struct {
		name, mounts string
		spaces       spaces
		want         string
	}{
		{"a disk of its own", rootExt4, spaces{"/": {9, 10}}, "ext4"},
		{"an overlay alone", rootOverlay, spaces{"/": {9, 10}}, "overlay, no quota visible: the figures may be those of the host's whole disk"},
		{"an overlay as large as the host's disk", rootOverlay + hostsFile, spaces{"/": {900, 1000}, "/etc/hosts": {900, 1000}}, "overlay, no quota visible: the figures may be those of the host's whole disk"},
		{"an overlay that is smaller", rootOverlay + hostsFile, spaces{"/": {9, 10}, "/etc/hosts": {900, 1000}}, "overlay, with a quota"},
		{"no mount table", "", spaces{"/": {9, 10}}, "unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := boxOf(t, files{mountsFile: tt.mounts})
			res := diskCheck{b, configOf().MinDiskPercent, newAsker(), tt.spaces.usage(b.root)}.run(t.Context())
			require.Equal(t, checks.Pass, res.Status)
			require.Equal(t, tt.want, factsOf(res)["file_system"])
		})
	}
}

func TestDisk_ADeadVolume(t *testing.T) {
	b := boxOf(t, files{mountsFile: rootExt4 + volumeNFS + podNFS})
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		var stuck atomic.Int32
		alive := spaces{"/": {15, 20}, "/workspace": {90, 100}}.usage(b.root)
		check := diskCheck{b, configOf().MinDiskPercent, newAsker(), func(path string) (space, error) {
			if path == b.at("/runpod-volume") {
				stuck.Add(1)
				<-back
			}
			return alive(path)
		}}
		for range 3 {
			began := time.Now()
			res := check.run(t.Context())
			require.Equal(t, checks.Warn, res.Status)
			require.Contains(t, res.Summary, "15.0 GB free of 20.0 GB (75.0 %); /runpod-volume: no answer within 2s")
			require.Contains(t, factsOf(res), "workspace_free_gb", "the other volume is shown")
			require.Equal(t, askLimit, time.Since(began))
		}
		require.EqualValues(t, 1, stuck.Load(), "nothing piles up")
		close(back)
	})
}

func TestDisk_Here(t *testing.T) {
	res := Disk(configOf("RUNPOD_MIN_DISK_PERCENT=0")).Run(t.Context())
	require.Contains(t, []checks.Status{checks.Pass, checks.Warn}, res.Status, res.Summary)
	require.Positive(t, factsOf(res)["free_gb"])
	require.Equal(t, checks.Fail, Disk(configOf("RUNPOD_MIN_DISK_PERCENT=100")).Run(t.Context()).Status)
	require.Contains(t, Disk(configOf("RUNPOD_MIN_DISK_PERCENT=most")).Run(t.Context()).Summary, "RUNPOD_MIN_DISK_PERCENT")
}
