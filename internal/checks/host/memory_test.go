package host

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

const (
	mountV2   = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
	mountV1   = "33 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 24 0:32 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
	mountBoth = mountV1 + "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
)

// gb is a number of GB as a cgroup file has it.
func gb(n float64) string { return strconv.FormatInt(int64(n*gib), 10) + "\n" }

// with16GB adds a host with 16 GB, 12 of them available.
func with16GB(f files) files {
	f["/proc/meminfo"] = fmt.Sprintf("MemTotal:       %d kB\nMemFree:  1000 kB\nMemAvailable: %d kB\n", 16<<20, 12<<20)
	return f
}

func TestMemory(t *testing.T) {
	const v2, v1 = "/sys/fs/cgroup", "/sys/fs/cgroup/memory"
	unlimited := "9223372036854771712\n"
	for _, tt := range []struct {
		name      string
		files     files
		total     float64
		available float64
		limit     any // nil: no fact
		source    string
	}{
		{"no cgroups", files{}, 16, 12, nil, "host"},
		{"no limit in v2", files{
			"/proc/self/cgroup": "0::/user.slice\n", mountsFile: mountV2,
			v2 + "/user.slice/memory.max": "max\n", v2 + "/user.slice/memory.current": gb(1),
		}, 16, 12, nil, "host"},
		{"a limit in v2", files{
			"/proc/self/cgroup": "0::/\n", mountsFile: mountV2,
			v2 + "/memory.max": gb(2), v2 + "/memory.current": gb(0.5),
		}, 2, 1.5, 2.0, "cgroup v2 /"},
		{"page cache can be dropped", files{
			"/proc/self/cgroup": "0::/\n", mountsFile: mountV2,
			v2 + "/memory.max": gb(8), v2 + "/memory.current": gb(7.8),
			v2 + "/memory.stat": "anon 1\ninactive_file " + gb(5) + "active_file " + gb(1) + "slab_reclaimable " + gb(0.2) + "shmem " + gb(1),
		}, 8, 6.4, 8.0, "cgroup v2 /"},
		{"more cache than is used, as counters lag", files{
			"/proc/self/cgroup": "0::/\n", mountsFile: mountV2,
			v2 + "/memory.max": gb(2), v2 + "/memory.current": gb(1), v2 + "/memory.stat": "inactive_file " + gb(3),
		}, 2, 2, 2.0, "cgroup v2 /"},
		{"over its limit", files{
			"/proc/self/cgroup": "0::/\n", mountsFile: mountV2,
			v2 + "/memory.max": gb(1), v2 + "/memory.current": gb(1.5),
		}, 1, 0, 1.0, "cgroup v2 /"},
		{"an ancestor has the smaller limit", files{
			"/proc/self/cgroup": "0::/pod/box\n", mountsFile: mountV2,
			v2 + "/pod/memory.max": gb(3), v2 + "/pod/memory.current": gb(1),
			v2 + "/pod/box/memory.max": gb(6), v2 + "/pod/box/memory.current": gb(1),
		}, 3, 2, 3.0, "cgroup v2 /pod"},
		{"an ancestor has the larger limit, but its other children use it", files{
			"/proc/self/cgroup": "0::/pod/box\n", mountsFile: mountV2,
			v2 + "/pod/memory.max": gb(10), v2 + "/pod/memory.current": gb(9.5),
			v2 + "/pod/box/memory.max": gb(6), v2 + "/pod/box/memory.current": gb(1),
		}, 6, 0.5, 6.0, "cgroup v2 /pod"},
		{"a limit above what the host has", files{
			"/proc/self/cgroup": "0::/\n", mountsFile: mountV2,
			v2 + "/memory.max": gb(64), v2 + "/memory.current": gb(1),
		}, 16, 12, 64.0, "host"},
		{"named from the host, seen from the container", files{
			"/proc/self/cgroup": "0::/kubepods/pod1/abc\n", mountsFile: mountV2,
			v2 + "/memory.max": gb(4), v2 + "/memory.current": gb(1),
		}, 4, 3, 4.0, "cgroup v2 /"},
		{"named from outside of the namespace", files{
			"/proc/self/cgroup": "0::/../other\n", mountsFile: mountV2,
			v2 + "/other/memory.max": gb(1), v2 + "/other/memory.current": gb(1),
			v2 + "/memory.max": gb(4), v2 + "/memory.current": gb(1),
		}, 4, 3, 4.0, "cgroup v2 /"},
		{"v1 in a container, both named from the host", files{
			"/proc/self/cgroup":           "4:memory:/docker/abc\n3:cpu:/docker/abc\n",
			mountsFile:                    "35 24 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory\n",
			v1 + "/memory.limit_in_bytes": gb(4), v1 + "/memory.usage_in_bytes": gb(3),
			v1 + "/memory.stat": "inactive_file 0\ntotal_inactive_file " + gb(1) + "total_active_file " + gb(1),
		}, 4, 3, 4.0, "cgroup v1 /"},
		{"no limit in v1", files{
			"/proc/self/cgroup": "4:memory:/a\n", mountsFile: mountV1,
			v1 + "/a/memory.limit_in_bytes": unlimited, v1 + "/a/memory.usage_in_bytes": gb(3),
			v1 + "/memory.limit_in_bytes": unlimited, v1 + "/memory.usage_in_bytes": gb(3),
		}, 16, 12, nil, "host"},
		{"v1, an ancestor that does not show", files{
			"/proc/self/cgroup": "4:memory:/\n", mountsFile: mountV1,
			v1 + "/memory.limit_in_bytes": unlimited, v1 + "/memory.usage_in_bytes": gb(1),
			v1 + "/memory.stat": "hierarchical_memory_limit " + gb(5),
		}, 5, 4, 5.0, "cgroup v1 /"},
		{"hybrid: v1 has the memory", files{
			"/proc/self/cgroup": "9:name=systemd:/\n4:memory:/a\n0::/a\n", mountsFile: mountBoth,
			v1 + "/a/memory.limit_in_bytes": gb(2), v1 + "/a/memory.usage_in_bytes": gb(1),
			"/sys/fs/cgroup/unified/a/cgroup.procs": "1\n",
		}, 2, 1, 2.0, "cgroup v1 /a"},
		{"hybrid: v2 has the memory", files{
			"/proc/self/cgroup": "4:memory:/\n0::/a\n", mountsFile: mountBoth,
			"/sys/fs/cgroup/unified/a/memory.max": gb(2), "/sys/fs/cgroup/unified/a/memory.current": gb(1),
		}, 2, 1, 2.0, "cgroup v2 /a"},
		{"cgroups that are not mounted", files{"/proc/self/cgroup": "0::/\n", mountsFile: ""}, 16, 12, nil, "host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			linuxOnly(t)
			res := memory{boxOf(t, with16GB(tt.files)), configOf("RUNPOD_MIN_MEMORY_GB=0").MinMemoryGB}.run(t.Context())
			require.Equal(t, checks.Pass, res.Status, res.Summary)
			facts := factsOf(res)
			require.InDelta(t, tt.total, facts["total_gb"], 0.01)
			require.InDelta(t, tt.available, facts["available_gb"], 0.01)
			require.Equal(t, tt.limit, facts["limit_gb"])
			require.Equal(t, tt.source, facts["source"])
		})
	}
}

func TestMemory_Severity(t *testing.T) {
	limited := func(limit, used float64) files {
		return files{
			"/proc/self/cgroup": "0::/\n", mountsFile: mountV2,
			"/sys/fs/cgroup/memory.max": gb(limit), "/sys/fs/cgroup/memory.current": gb(used),
		}
	}
	for _, tt := range []struct {
		name  string
		files files
		env   []string
		want  checks.Status
		said  string
	}{
		{"enough", files{}, nil, checks.Pass, "Memory check passed: 12.00GB available (of 16.00GB total)"},
		{"a small container, by default", limited(2, 0.5), nil, checks.Warn, "Insufficient memory: 1.50GB available, 4.0GB required"},
		{"a container of just the default", limited(4, 0.25), nil, checks.Warn, "Insufficient memory: 3.75GB available, 4.0GB required"},
		{"a larger one that is full, by default", limited(8, 7), nil, checks.Fail, "Insufficient memory: 1.00GB available, 4.0GB required"},
		{"a small container, and somebody asks for more", limited(2, 0.5), []string{"RUNPOD_MIN_MEMORY_GB=4"}, checks.Fail, "Insufficient memory: 1.50GB available, 4.0GB required"},
		{"more than any box has", files{}, []string{"RUNPOD_MIN_MEMORY_GB=99999"}, checks.Fail, "Insufficient memory: 12.00GB available, 99999.0GB required"},
		{"half a GB is enough", limited(2, 1.25), []string{"RUNPOD_MIN_MEMORY_GB=0.5"}, checks.Pass, "Memory check passed: 0.75GB available (of 2.00GB total)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			linuxOnly(t)
			cfg := configOf(tt.env...)
			res := memory{boxOf(t, with16GB(tt.files)), cfg.MinMemoryGB}.run(t.Context())
			require.Equal(t, tt.want, res.Status)
			require.Equal(t, tt.said, res.Said)
			require.Equal(t, tt.want == checks.Pass, res.Remedy == "")
			require.Equal(t, cfg.MinMemoryGB.Origin, res.Threshold.Origin)
		})
	}
}

func TestMemory_NeverGuesses(t *testing.T) {
	v2 := func(f files) files {
		f["/proc/self/cgroup"], f[mountsFile] = "0::/\n", mountV2
		return with16GB(f)
	}
	for _, tt := range []struct {
		name  string
		files files
		err   string
	}{
		{"no figure of the host", files{"/proc/meminfo": "MemTotal: lots kB\n"}, "/proc/meminfo: "},
		{"no figures at all", files{}, "/proc/meminfo: 0 bytes available of 0"},
		{"more available than there is", files{"/proc/meminfo": "MemTotal: 1 kB\nMemAvailable: 2 kB\n"}, "/proc/meminfo: 2048 bytes available of 1024"},
		{"a limit in words", v2(files{"/sys/fs/cgroup/memory.max": "2GB\n"}), `/sys/fs/cgroup/memory.max: "2GB" is no number of bytes`},
		{"an empty limit", v2(files{"/sys/fs/cgroup/memory.max": ""}), `/sys/fs/cgroup/memory.max: "" is no number`},
		{"a negative limit", v2(files{"/sys/fs/cgroup/memory.max": "-1"}), `memory.max: "-1" is no number`},
		{"a limit, but no usage", v2(files{"/sys/fs/cgroup/memory.max": "1000"}), "/sys/fs/cgroup/memory.current: there is a limit"},
		{"usage in words", v2(files{"/sys/fs/cgroup/memory.max": "1000", "/sys/fs/cgroup/memory.current": "max"}), "memory.current: there is a limit"},
		{"cache in words", v2(files{
			"/sys/fs/cgroup/memory.max": "1000", "/sys/fs/cgroup/memory.current": "1", "/sys/fs/cgroup/memory.stat": "inactive_file many\n",
		}), `/sys/fs/cgroup/memory.stat: "inactive_file many" is no number`},
		{"a folder in place of a file", v2(files{"/sys/fs/cgroup/memory.max/": ""}), "memory.max: is a directory"},
		{"cgroups in no known form", with16GB(files{"/proc/self/cgroup": "hello\n"}), "/proc/self/cgroup: cannot read the line"},
		{"mounts in no known form", with16GB(files{"/proc/self/cgroup": "0::/\n", mountsFile: "hello\n"}), "/proc/self/mountinfo: cannot read the line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			linuxOnly(t)
			res := memory{boxOf(t, tt.files), configOf().MinMemoryGB}.run(t.Context())
			require.Equal(t, checks.Error, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.err)
			require.NotEmpty(t, res.Remedy)
		})
	}
	t.Run("a variable that makes no sense", func(t *testing.T) {
		res := Memory(configOf("RUNPOD_MIN_MEMORY_GB=much")).Run(t.Context())
		require.Equal(t, checks.Error, res.Status)
		require.Contains(t, res.Summary, `RUNPOD_MIN_MEMORY_GB="much"`)
	})
}

func TestMemory_Here(t *testing.T) {
	res := Memory(configOf("RUNPOD_MIN_MEMORY_GB=0.001")).Run(t.Context())
	require.Equal(t, checks.Pass, res.Status, res.Summary)
	require.Positive(t, factsOf(res)["available_gb"])
	require.Equal(t, checks.Fail, Memory(configOf("RUNPOD_MIN_MEMORY_GB=99999")).Run(t.Context()).Status)
}
