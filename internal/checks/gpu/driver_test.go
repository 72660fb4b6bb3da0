package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestLook(t *testing.T) {
	for _, tt := range []struct {
		name        string
		files       []string
		version     string // of the kernel's module
		environ     []string
		proof, hint bool
	}{
		{"nothing", nil, "", nil, false, false},
		{"somebody asked for GPUs, which proves nothing", nil, "", []string{"NVIDIA_VISIBLE_DEVICES=all"}, false, false},
		{"a device", []string{"dev/nvidia0"}, "", nil, true, false},
		{"nodes that are no GPUs", []string{"dev/nvidia-uvm", "dev/nvidia0x", "dev/nvidia-caps/nvidia-cap1"}, "", nil, false, false},
		{"the control node", []string{"dev/nvidiactl"}, "", nil, true, false},
		{"the kernel's driver", nil, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue", nil, true, false},
		{"the open kernel driver", nil, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release", nil, true, false},
		{"a library", []string{"usr/lib/x86_64-linux-gnu/libcuda.so.1"}, "", nil, false, true},
		{"a library that the loader does not find", []string{"usr/local/nvidia/lib64/libnvidia-ml.so.1"}, "", nil, false, true},
		{"Windows with another GPU", []string{"dev/dxg"}, "", nil, false, false},
		{"Windows with an NVIDIA GPU", []string{"dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"}, "", nil, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for _, f := range tt.files {
				write(t, root, map[string]string{f: ""})
			}
			if tt.version != "" {
				write(t, root, map[string]string{"proc/driver/nvidia/version": tt.version})
			}
			p := look(root, tt.environ)
			require.Equal(t, tt.proof, p.proof())
			require.Equal(t, tt.hint, p.hint())
			if tt.version != "" {
				require.True(t, p.module)
				require.Equal(t, "550.54.15", p.version)
			}
		})
	}
	t.Run("a library in the loader's cache", func(t *testing.T) {
		root := t.TempDir()
		write(t, root, map[string]string{
			"opt/gone/x": "", "opt/nv/libcuda.so.1": "",
			"etc/ld.so.cache": "glibc-ld.so.cache1.1\x00libcuda.so.1\x00/opt/gone/libcuda.so.1\x00libcuda.so.1\x00/opt/nv/libcuda.so.1\x00",
		})
		p := look(root, nil)
		require.Equal(t, []string{"/opt/nv/libcuda.so.1"}, p.libraries)
		require.Empty(t, p.extra)
	})
	t.Run("a library that the environment names", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, map[string]string{libNVML: ""})
		require.Equal(t, []string{dir + "/" + libNVML}, look(t.TempDir(), []string{"LD_LIBRARY_PATH=/gone::" + dir}).libraries)
	})
	t.Run("the folder of a hidden library is passed on", func(t *testing.T) {
		root := t.TempDir()
		write(t, root, map[string]string{"usr/local/nvidia/lib64/libcuda.so.1": ""})
		require.Equal(t, []string{"/usr/local/nvidia/lib64"}, look(root, nil).extra)
	})
	t.Run("nvidia-smi", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, map[string]string{"text/nvidia-smi": ""})
		path := script(t, dir, tool, "")
		p := look(t.TempDir(), []string{"PATH=/gone:" + dir + "/text:" + dir})
		require.Equal(t, path, p.tool)
		require.True(t, p.hint())
	})
}

func TestHelperEnviron(t *testing.T) {
	for _, tt := range []struct {
		name               string
		environ            []string
		visible, libraries string
		want               []string
	}{
		{"nothing", nil, "", "", nil},
		{"what harms is left out", []string{"A=b", "LD_BIND_NOW=1", "CUDA_DISABLE_PTX_JIT=1", "CUDA_DEVICE_ORDER=FASTEST_FIRST"}, "", "", []string{"A=b"}},
		{"the choice of the operator stays", []string{"CUDA_VISIBLE_DEVICES=1"}, "", "", []string{"CUDA_VISIBLE_DEVICES=1"}},
		{"one GPU", []string{"CUDA_VISIBLE_DEVICES=1", "LD_LIBRARY_PATH=/a"}, "GPU-1", "", []string{"LD_LIBRARY_PATH=/a", "CUDA_VISIBLE_DEVICES=GPU-1"}},
		{"a hidden library comes last", []string{"LD_LIBRARY_PATH=/a:"}, "", "/usr/local/nvidia/lib64", []string{"LD_LIBRARY_PATH=/a:/usr/local/nvidia/lib64"}},
		{"a hidden library alone", nil, "", "/usr/local/nvidia/lib64", []string{"LD_LIBRARY_PATH=/usr/local/nvidia/lib64"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := helperEnviron(tt.environ, tt.visible, tt.libraries)
			require.ElementsMatch(t, append(tt.want, given...), got)
		})
	}
	require.Equal(t, []string{"CUDA_PROFILE"}, removed([]string{"CUDA_PROFILE=1", "COMPUTE_PROFILE=", "A=b"}))
}

// bare is a driver on a machine without anything, that must start nothing.
func bare(t *testing.T, environ ...string) *Driver {
	t.Helper()
	d := New(Options{Config: configOf(environ...), Env: append([]string{"PATH=" + t.TempDir()}, environ...), Root: t.TempDir()})
	d.helpers.locate = func(Helper) (Program, error) {
		t.Error("a helper was asked for")
		return Program{}, errors.New("none")
	}
	return d
}

func TestNoGPU(t *testing.T) {
	d := bare(t)
	for _, c := range []checks.Check{d.Version(), d.Memory(), d.Health(), d.Init(), d.Benchmark()} {
		res := run1(t, c)
		require.Equal(t, checks.Skip, res.Status)
		require.Equal(t, "no GPU: no NVIDIA device, kernel driver or driver library is here", res.Summary)
	}
	_, err := d.GPUs(t.Context())
	require.ErrorContains(t, err, "no GPU: ")

	res := run1(t, bare(t, "RUNPOD_GPU_COUNT=2").Memory())
	require.Equal(t, checks.Fail, res.Status)
	require.Contains(t, res.Summary, "2 expected (RUNPOD_GPU_COUNT)")
	require.Equal(t, checks.Skip, run1(t, bare(t, "RUNPOD_GPU_COUNT=0").Memory()).Status)

	res = run1(t, bare(t, "RUNPOD_GPU_COUNT=some").Health())
	require.Equal(t, checks.Error, res.Status, "how many are asked for is not known")
	require.Contains(t, res.Summary, "RUNPOD_GPU_COUNT=")
}

func BenchmarkNoGPU(b *testing.B) {
	d := New(Options{Config: configOf(), Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Root: b.TempDir()})
	check := d.Memory()
	for b.Loop() {
		check.Run(b.Context())
	}
}

func TestChecks_MalformedVariables(t *testing.T) {
	for name, check := range map[string]func(*Driver) checks.Check{
		"RUNPOD_GPU_TEST_TIMEOUT=soon":       (*Driver).Health,
		"RUNPOD_MIN_CUDA_VERSION=new":        (*Driver).Version,
		"RUNPOD_GPU_MAX_ERROR_MESSAGES=many": (*Driver).Memory,
		"RUNPODCTL_WORKER_XID_FAIL=all":      (*Driver).Health,
		"RUNPOD_GPU_COUNT=some":              (*Driver).Health,
		"RUNPOD_GPU_BENCHMARK_TIMEOUT=-1":    (*Driver).Benchmark,
	} {
		t.Run(name, func(t *testing.T) {
			res := run1(t, check(machine{nodes: 1, helpers: []Helper{}, config: []string{name}}.start(t)))
			require.Equal(t, checks.Error, res.Status)
			variable, _, _ := strings.Cut(name, "=")
			require.Contains(t, res.Summary, variable+"=")
		})
	}
}

func TestPass(t *testing.T) {
	now := time.Unix(0, 0)
	d := New(Options{Config: configOf("RUNPOD_GPU_TEST_TIMEOUT=20")})
	d.now = func() time.Time { return now }
	enter := func(phase checks.Phase, id string) *pass {
		_, p, leave := d.enter(t.Context(), phase, id)
		now = now.Add(3 * time.Second) // the check
		leave()
		now = now.Add(passGap) // another check, which has nothing to do with GPUs
		return p
	}
	first := enter(checks.Early, "a")
	require.Same(t, first, enter(checks.Early, "b"), "a check of the same pass")
	require.Equal(t, 14*time.Second, first.left, "they share the time, and rests are not counted")
	require.Same(t, first, enter(checks.Start, ""), "who only asks joins")
	again := enter(checks.Early, "a")
	require.NotSame(t, first, again, "a check that runs again asks anew")
	require.Equal(t, 17*time.Second, again.left)
	start := enter(checks.Start, "c")
	require.NotSame(t, again, start, "another phase")
	now = now.Add(time.Second)
	require.NotSame(t, start, enter(checks.Start, "d"), "after a rest")
}

func TestPass_WhoseTimeIsOver(t *testing.T) {
	d := New(Options{Config: configOf("RUNPOD_GPU_TEST_TIMEOUT=20")})
	d.current = &pass{phase: checks.Early, ran: map[string]bool{}, used: time.Now()}
	ctx, _, leave := d.enter(t.Context(), checks.Early, "a")
	defer leave()
	d.helpers.locate = func(Helper) (Program, error) {
		t.Error("a helper was asked for")
		return Program{}, errors.New("none")
	}
	_, err := d.helpers.ask(ctx, question{helper: CUDAHelper})
	require.EqualError(t, err, "not looked at: the time for all GPU checks, 20s, is over")
	require.True(t, silent(err))
}

func TestPass_AsksOnce(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	d := machine{nodes: 1, helpers: []Helper{}, smi: `[ -n "$1" ] || echo asked >> ` + count + "\n" + fakeSMI}.start(t)
	version, health := d.Version(), d.Health()
	run1(t, version)
	run1(t, health)
	require.Equal(t, 1, asked(t, count))
	gpus, err := d.GPUs(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Info{{Name: "NVIDIA H100 80GB HBM3", TotalGB: 81559.0 / 1024, FreeGB: 81000.0 / 1024}}, gpus)
	require.Equal(t, 1, asked(t, count))
	run1(t, version)
	require.Equal(t, 2, asked(t, count), "a run again asks again")
}

func TestGPUs_NeedsSomebodyWhoKnows(t *testing.T) {
	_, err := machine{nodes: 1, helpers: []Helper{}}.start(t).GPUs(t.Context())
	require.ErrorContains(t, err, "the cuda helper is not in this binary")
	_, err = machine{nodes: 0, helpers: []Helper{}, smi: "echo No devices were found; exit 6"}.start(t).GPUs(t.Context())
	require.EqualError(t, err, "no GPU: there is nvidia-smi, but no device that it knows")
}

func asked(t *testing.T, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.Count(string(text), "asked")
}

func TestInterrupted(t *testing.T) {
	started := filepath.Join(t.TempDir(), "started")
	d := machine{nodes: 1, helpers: []Helper{}, smi: "touch " + started + "; trap '' TERM; sleep 600"}.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	res := d.Version().Run(ctx)
	require.Equal(t, checks.Skipped("not finished: interrupted"), res)
	require.Nil(t, d.current.found, "what was cut off is not kept")
}

// A fabric that becomes ready while there is time is no fault.
func TestFabric(t *testing.T) {
	never := machine{nodes: 1, gpus: 1, rules: "cuInit=802"}.start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	locate, times := never.helpers.locate, 0
	never.helpers.locate = func(h Helper) (Program, error) {
		if h == CUDAHelper {
			if times++; times == 3 {
				cancel(overError{budget: time.Minute})
			}
		}
		return locate(h)
	}
	res := never.Memory().Run(ctx)
	require.Equal(t, checks.Fail, res.Status)
	require.Contains(t, res.Summary, "the NVSwitch fabric is not ready (CUDA_ERROR_SYSTEM_NOT_READY, 802, from cuInit)")
	require.Equal(t, 3, times, "the survey, and twice more until the time was over")

	d := machine{nodes: 1, gpus: 1}.start(t)
	seen, _ := d.look()
	within, p, leave := d.enter(t.Context(), checks.Early, "gpu_memory")
	defer leave()
	s := d.inquire(within, p, seen)
	before := *s
	notReady := line("cuda.init", "fail", cudaNotReady, nil)
	before.cuda = listing{failure: &notReady}
	units, found, after := d.testable(within, p, &before)
	require.Empty(t, found)
	require.Len(t, units, 1)
	require.Same(t, after, p.found, "the others of the pass know it too")
}
