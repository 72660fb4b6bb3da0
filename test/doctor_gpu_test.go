package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/test/gpufake"
)

// The built binary and its helpers, against driver libraries that behave as told.
func TestDoctor_GPUs(t *testing.T) {
	t.Parallel()
	probes := t.TempDir()
	gpufake.Helpers(t, probes)
	table := []struct {
		name          string
		variants      []gpufake.Variant
		gpus          int
		rules, values string
		env           []string
		code          int
		want          map[string]string // check → status
		says          map[string]string // check → part of its summary
	}{
		{
			name: "healthy", gpus: 1,
			want: map[string]string{"cuda_version": "pass", "gpu_health": "pass", "gpu_memory": "pass", "cuda_init": "pass", "gpu_benchmark": "pass"},
		},
		{
			name: "the second of two is broken", gpus: 2, rules: "cuMemAlloc_v2@1=719", code: 1,
			want: map[string]string{"cuda_version": "pass", "gpu_memory": "fail"},
			says: map[string]string{"gpu_memory": "GPU 1"},
		},
		{
			name: "one hangs", gpus: 2, rules: "cuDevicePrimaryCtxRetain@1=hang", env: []string{"RUNPOD_GPU_TEST_TIMEOUT=4"}, code: 1,
			want: map[string]string{"gpu_health": "pass", "gpu_memory": "fail"},
			says: map[string]string{"gpu_memory": "GPU 1"},
		},
		{
			name: "an old driver", gpus: 1, values: "cuda=11040", code: 1,
			want: map[string]string{"cuda_version": "fail"},
			says: map[string]string{"cuda_version": "11.4"},
		},
		{
			name: "out of memory", gpus: 1, rules: "cuMemAlloc_v2=2", code: 1,
			want: map[string]string{"gpu_memory": "fail"},
		},
		{
			name: "a wrong product", gpus: 1, values: "wrong_result=1", code: 1,
			want: map[string]string{"gpu_memory": "pass", "gpu_benchmark": "fail"},
			says: map[string]string{"gpu_benchmark": "wrong"},
		},
		{
			name: "uncorrectable ECC errors", gpus: 1, values: "0.ecc_volatile=3", code: 1,
			want: map[string]string{"gpu_health": "fail", "gpu_memory": "pass"},
			says: map[string]string{"gpu_health": "ECC"},
		},
		{
			name: "MIG slices", gpus: 1, values: "0.mig=2",
			want: map[string]string{"gpu_health": "pass", "gpu_memory": "pass", "gpu_benchmark": "pass"},
		},
		{
			name: "a driver that lacks newer functions", variants: []gpufake.Variant{gpufake.CUDAOld, gpufake.NVMLOld}, gpus: 1,
			want: map[string]string{"gpu_health": "pass", "gpu_memory": "pass"},
		},
		{
			name: "library and kernel driver differ", gpus: 1, rules: "nvmlInit_v2=18;cuInit=803", code: 1,
			want: map[string]string{"gpu_health": "fail", "gpu_memory": "fail"},
		},
		{
			name: "fewer than asked for", gpus: 1, env: []string{"RUNPOD_GPU_COUNT=2"}, code: 1,
			want: map[string]string{"gpu_health": "fail"},
		},
		{
			name: "a crash of the driver", gpus: 2, rules: "cuMemcpyDtoH_v2@0=segv", code: 1,
			want: map[string]string{"gpu_health": "pass", "gpu_memory": "fail"},
			says: map[string]string{"gpu_memory": "GPU 0"},
		},
	}
	outcomes := make([]string, len(table))
	t.Run("table", func(t *testing.T) {
		for i, row := range table {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				variants := row.variants
				if variants == nil {
					variants = []gpufake.Variant{gpufake.CUDA, gpufake.NVML}
				}
				env := append(gpufake.Build(t, variants...).Env(row.rules, row.values, row.gpus), "RUNPODCTL_WORKER_PROBES="+probes)
				env = append(append(env, roomy...), row.env...)
				code, report := doctor(t, env, "--target", target(t))
				line := fmt.Sprintf("%-36s", row.name)
				for _, id := range gpuRows {
					line += fmt.Sprintf(" %-6s", report.row(t, id).Status)
				}
				outcomes[i] = line
				require.Equal(t, row.code, code, report)
				for id, status := range row.want {
					require.Equal(t, status, report.row(t, id).Status, "%s: %+v", id, report.row(t, id))
					if status != "pass" {
						require.NotEmpty(t, report.row(t, id).Remedy, id)
					}
				}
				for id, text := range row.says {
					require.Contains(t, report.row(t, id).Summary+report.row(t, id).Output, text, id)
				}
			})
		}
	})
	t.Logf("%-36s %s\n%s", "driver", strings.Join([]string{"cuda  ", "health", "memory", "init  ", "bench "}, " "), strings.Join(outcomes, "\n"))
}

// A release carries its helpers inside: nothing lies beside it, and nothing is left behind.
func TestDoctor_GPUsOfARelease(t *testing.T) {
	t.Parallel()
	libs := gpufake.Build(t, gpufake.CUDA, gpufake.NVML)
	path := filepath.Join(t.TempDir(), "runpodctl-worker")
	build := exec.Command("make", "-C", "..", "release-build", "BIN="+path)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(30<<20))

	temporary := t.TempDir()
	p := runToEnd(t, command{
		args: []string{path, "doctor", "--json", "--target", target(t)}, dir: t.TempDir(),
		env: slices.Concat(libs.Env("", "", 1), roomy, []string{"TMPDIR=" + temporary}),
	})
	require.Zero(t, p.wait(t), p.stdout)
	var report doctorReport
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &report))
	for _, id := range gpuRows {
		require.Equal(t, "pass", report.row(t, id).Status, "%s: %+v", id, report.row(t, id))
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}
