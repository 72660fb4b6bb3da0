package gpu

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

// machine is a box with fake GPUs: device nodes and driver files below a folder, and libraries that answer as told.
type machine struct {
	nodes, gpus    int // device nodes; GPUs of the libraries
	rules, values  string
	libraries      []gpufake.Variant // none: both
	helpers        []Helper          // that are there; nil: both
	environ        []string          // more of it
	smi            string            // script of nvidia-smi; empty: there is none
	config         []string          // the worker's variables
	options        Options
	limit, between time.Duration // for helpers; 0: a minute
}

// programs builds the helpers once for all tests.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gpu-helpers-")
	if err != nil {
		return "", err
	}
	built = dir
	for name, cgo := range map[string]string{"runpodctl-worker-cuda-probe": "0", "runpodctl-worker-nvml-probe": "1"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), "runpodctl-worker/cmd/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("%w: %s", err, out)
		}
	}
	return dir, nil
})

// built is where they are, for the end of the tests.
var built string

// start makes the driver of a machine.
func (m machine) start(t *testing.T) *Driver {
	t.Helper()
	root, path := t.TempDir(), t.TempDir()
	for _, dir := range []string{"dev", "proc/driver/nvidia"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o700))
	}
	for i := range m.nodes {
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/dev/nvidia%d", root, i), nil, 0o600))
	}
	if m.smi != "" {
		script(t, path, tool, m.smi)
	}
	environ := []string{"PATH=" + path + ":/usr/bin:/bin", "HOME=" + root, "GORACE=atexit_sleep_ms=0"}
	if len(m.helpers) > 0 || m.helpers == nil {
		libraries := m.libraries
		if libraries == nil {
			libraries = []gpufake.Variant{gpufake.CUDA, gpufake.NVML}
		}
		environ = append(environ, gpufake.Build(t, libraries...).Env(m.rules, m.values, m.gpus)...)
	}
	o := m.options
	o.Config, o.Env, o.Root = configOf(append(m.config, m.environ...)...), append(environ, m.environ...), root
	o.Locate = m.locate(t)
	d := New(o)
	limit, between := m.limit, m.between
	if limit == 0 {
		limit = time.Minute
	}
	if between == 0 {
		between = time.Minute
	}
	d.helpers.limit, d.helpers.between = func(wire.Step) time.Duration { return limit }, between
	if d.config.GPUTimeout.Origin == "default" {
		d.config.GPUTimeout.Value = 5 * time.Minute // the machine may be busy
	}
	return d
}

func (m machine) locate(t *testing.T) Locator {
	t.Helper()
	if m.helpers != nil && len(m.helpers) == 0 {
		return Locate(lookup())
	}
	dir, err := programs()
	require.NoError(t, err, "the helpers are built with go and gcc")
	return func(h Helper) (Program, error) {
		if m.helpers != nil && !slices.Contains(m.helpers, h) {
			return Locate(lookup())(h)
		}
		return Program{Path: filepath.Join(dir, h.file())}, nil
	}
}

func run1(t *testing.T, c checks.Check) checks.Result {
	t.Helper()
	res := c.Run(t.Context())
	if res.Status != checks.Pass && res.Status != checks.Skip {
		require.NotEmpty(t, res.Remedy)
	}
	require.NotEmpty(t, res.Summary)
	require.NotContains(t, res.Summary, "\n")
	return res
}

func TestHealthyMachine(t *testing.T) {
	d := machine{nodes: 2, gpus: 2, environ: []string{"CUDA_VERSION=12.4.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.4"}}.start(t)
	for _, tt := range []struct {
		check         checks.Check
		summary, said string
	}{
		{d.Version(), "the driver supports CUDA 12.4, the image is built for 12.4", "CUDA version check passed: 12.4 (minimum: 11.8)"},
		{d.Memory(), "2 GPUs: written, read back and compared", "GPU binary test passed: 2 GPU(s) healthy (CUDA 12.4)"},
		{d.Health(), "2 GPUs are well, says NVML", ""},
		{d.Init(), "2 GPUs initialised", "CUDA initialization passed: 2 device(s) initialized successfully"},
		{d.Benchmark(), "a 1024×1024 product in ", "GPU compute benchmark passed: Matrix multiply completed in "},
	} {
		t.Run(tt.check.ID, func(t *testing.T) {
			res := run1(t, tt.check)
			require.Equal(t, checks.Pass, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.summary)
			require.Contains(t, res.Said, tt.said)
			require.NotEmpty(t, res.Facts)
			require.Equal(t, checks.LaneGPU, tt.check.Lane)
			require.True(t, tt.check.Builtin)
		})
	}
	gpus, err := d.GPUs(t.Context())
	require.NoError(t, err)
	require.Len(t, gpus, 2)
	require.Equal(t, 1, gpus[1].Index)
	require.InDelta(t, 0.5, gpus[1].TotalGB, 0.01)
	require.InDelta(t, 0.5, gpus[1].FreeGB, 0.1)
}

func TestMachines(t *testing.T) {
	memory, health, version := (*Driver).Memory, (*Driver).Health, (*Driver).Version
	initial, benchmark := (*Driver).Init, (*Driver).Benchmark
	loaded := Options{EarlyPassed: func() bool { return true }}
	for _, tt := range []struct {
		name    string
		machine machine
		check   func(*Driver) checks.Check
		status  checks.Status
		want    string
	}{
		{"the second GPU has no memory left", machine{nodes: 2, gpus: 2, rules: "cuMemAlloc_v2@1=2"}, memory, checks.Fail, "GPU 1: cannot allocate 16 MiB (free "},
		{"full after deferred loading", machine{nodes: 1, gpus: 1, rules: "cuMemAlloc_v2=2", options: Options{Deferred: true}}, memory, checks.Warn, "GPU 0: cannot allocate 16 MiB"},
		{"full of the model", machine{nodes: 1, gpus: 1, rules: "cuMemAlloc_v2=2", options: loaded}, initial, checks.Skip, "GPU 0: cannot allocate"},
		{"full, and nobody knows why", machine{nodes: 1, gpus: 1, rules: "cuMemAlloc_v2=2"}, initial, checks.Fail, "GPU 0: cannot allocate"},
		{"exclusive since the model is loaded", machine{nodes: 1, gpus: 1, rules: "cuDevicePrimaryCtxRetain=46", options: loaded}, benchmark, checks.Skip, "(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, from cuDevicePrimaryCtxRetain)"},
		{"a sticky error with a model loaded", machine{nodes: 1, gpus: 1, rules: "cuDevicePrimaryCtxRetain=214", options: loaded}, initial, checks.Fail, "CUDA_ERROR_ECC_UNCORRECTABLE"},
		{"exclusive", machine{nodes: 1, gpus: 1, rules: "cuDevicePrimaryCtxRetain=46"}, memory, checks.Fail, "taken by another process"},
		{"a flipped bit", machine{nodes: 1, gpus: 1, values: "flip_bit=1"}, memory, checks.Fail, "GPU 0: memory read back differs: "},
		{"a wrong product", machine{nodes: 1, gpus: 1, values: "wrong_result=1", options: loaded}, benchmark, checks.Fail, "GPU 0: wrong result: c["},
		{"a slow product", machine{nodes: 1, gpus: 1, values: "kernel_us=150000"}, benchmark, checks.Warn, "product took 150ms, which is slow"},
		{"a product over its limit", machine{nodes: 1, gpus: 1, values: "kernel_us=150000", config: []string{"RUNPOD_GPU_BENCHMARK_TIMEOUT=0.12"}}, benchmark, checks.Fail, "product took 150ms (limit 120ms)"},
		{"a driver that crashes", machine{nodes: 2, gpus: 2, rules: "cuMemcpyDtoH_v2@0=segv"}, memory, checks.Fail, "GPU 0: the driver crashed while testing memory: SIGSEGV: segmentation violation"},
		{"a driver that hangs", machine{nodes: 2, gpus: 2, rules: "cuDevicePrimaryCtxRetain@1=hang", limit: 5 * time.Second}, memory, checks.Fail, "GPU 1: no answer within 5s while creating a context"},
		{"no device for CUDA", machine{nodes: 1, gpus: 1, rules: "cuInit=100"}, memory, checks.Fail, "CUDA sees no GPU (CUDA_ERROR_NO_DEVICE, 100, from cuInit); NVML sees 1"},
		{"library and kernel differ", machine{nodes: 1, gpus: 1, rules: "cuInit=803"}, memory, checks.Fail, "driver library and kernel module have different versions"},
		{"library and kernel differ, says NVML", machine{nodes: 1, gpus: 1, rules: "nvmlInit_v2=18"}, health, checks.Fail, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"},
		{"copies between GPUs are damaged", machine{nodes: 2, gpus: 2, values: "0.p2p_corrupt=1"}, memory, checks.Warn, "GPU 0 → GPU 1: a copy between the GPUs arrives damaged"},
		{"no way between GPUs", machine{nodes: 2, gpus: 2, values: "p2p=0"}, memory, checks.Pass, "2 GPUs"},
		{"uncorrectable errors", machine{nodes: 2, gpus: 2, values: "1.ecc_volatile=3"}, health, checks.Fail, "GPU 1: 3 uncorrectable ECC errors since the driver was loaded"},
		{"the driver asks for a reset", machine{nodes: 1, gpus: 1, values: "recovery=1"}, health, checks.Fail, "GPU 0: the driver asks for a recovery: Reset"},
		{"lost", machine{nodes: 2, gpus: 2, rules: "nvmlDeviceGetHandleByIndex_v2@1=15"}, health, checks.Fail, "GPU 1: it has fallen off the bus"},
		{"an Xid during the test", machine{nodes: 1, gpus: 1, values: "xid=48"}, memory, checks.Fail, "GPU 0: Xid 48: a double-bit memory error"},
		{"an application's Xid during the test", machine{nodes: 1, gpus: 1, values: "xid=31"}, memory, checks.Pass, "1 GPU"},
		{"an Xid that somebody ignores", machine{nodes: 1, gpus: 1, values: "xid=48", config: []string{"RUNPODCTL_WORKER_XID_IGNORE=48"}}, memory, checks.Pass, "1 GPU"},
		{"an Xid that somebody minds", machine{nodes: 1, gpus: 1, values: "xid=94", config: []string{"RUNPODCTL_WORKER_XID_FAIL=94"}}, memory, checks.Fail, "Xid 94"},
		{"an old driver", machine{nodes: 1, gpus: 1, values: "cuda=11040", libraries: []gpufake.Variant{gpufake.CUDAOld, gpufake.NVMLOld}}, version, checks.Fail, "the driver supports CUDA 11.4, at least 11.8 is required (default)"},
		{"an old driver's health", machine{nodes: 1, gpus: 1, values: "cuda=11040", libraries: []gpufake.Variant{gpufake.CUDAOld, gpufake.NVMLOld}}, health, checks.Pass, "1 GPU is well, says NVML"},
		{"an old driver's memory", machine{nodes: 1, gpus: 1, libraries: []gpufake.Variant{gpufake.CUDAOld, gpufake.NVMLOld}}, memory, checks.Pass, "1 GPU"},
		{"a stub library", machine{nodes: 1, gpus: 1, libraries: []gpufake.Variant{gpufake.CUDAStub, gpufake.NVML}}, memory, checks.Fail, "a stub of libcuda is loaded"},
		{"no CUDA library", machine{nodes: 1, gpus: 1, libraries: []gpufake.Variant{gpufake.NVML}}, memory, checks.Fail, "libcuda.so.1"},
		{"no library at all", machine{nodes: 1, gpus: 1, libraries: []gpufake.Variant{}}, memory, checks.Fail, "GPU device nodes are here, the driver's libraries are not"},
		{"a call is refused, and a node is missing", machine{nodes: 1, gpus: 1, rules: "cuInit=999"}, memory, checks.Fail, "(CUDA_ERROR_UNKNOWN, 999, from cuInit); /dev/nvidiactl is not in this container"},
		{"no NVML library", machine{nodes: 1, gpus: 1, libraries: []gpufake.Variant{gpufake.CUDA}}, health, checks.Warn, "libnvidia-ml.so.1"},
		{"MIG", machine{nodes: 1, gpus: 1, values: "0.mig=2"}, memory, checks.Pass, "2 MIG slices"},
		{"MIG's health", machine{nodes: 1, gpus: 1, values: "0.mig=2"}, health, checks.Pass, "1 GPU is well"},
		{"MIG without an instance", machine{nodes: 1, gpus: 1, values: "0.mig=0"}, health, checks.Fail, "GPU 0: MIG is on, and there is no instance"},
		{"a GPU less than expected", machine{nodes: 1, gpus: 1, config: []string{"RUNPOD_GPU_COUNT=2"}}, health, checks.Fail, "1 GPU is here, 2 expected (RUNPOD_GPU_COUNT)"},
		{"libraries without a device", machine{gpus: 0}, memory, checks.Skip, "no GPU: there are driver libraries"},
		{"libraries without a device, and one expected", machine{gpus: 0, config: []string{"RUNPOD_GPU_COUNT=1"}}, memory, checks.Fail, "1 expected (RUNPOD_GPU_COUNT)"},
		{"NVML crashes, nvidia-smi is there", machine{nodes: 1, gpus: 1, rules: "nvmlInit_v2=segv", smi: fakeSMI}, health, checks.Warn, "nvidia-smi answers in its place"},
		{"NVML hangs", machine{nodes: 1, gpus: 1, rules: "nvmlInit_v2=hang", limit: 5 * time.Second}, health, checks.Fail, "no answer within 5s while initialising NVML"},
		{"NVML hangs, CUDA does not", machine{nodes: 1, gpus: 1, rules: "nvmlInit_v2=hang", limit: 5 * time.Second}, memory, checks.Pass, "1 GPU"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := tt.machine.start(t)
			res := run1(t, tt.check(d))
			require.Equal(t, tt.status, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.want)
		})
	}
}

// fakeSMI answers as an nvidia-smi of a machine with one GPU.
const fakeSMI = `case "$1" in
"") echo "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |" ;;
--query-gpu=*) echo "0, NVIDIA H100 80GB HBM3, GPU-1, 00000000:1A:00.0, 81559, 81000, 0, Disabled, None" ;;
esac
`

func TestHelpersAreMissing(t *testing.T) {
	none := []Helper{}
	for _, tt := range []struct {
		name   string
		smi    string
		check  func(*Driver) checks.Check
		status checks.Status
		want   []string
	}{
		{"version from nvidia-smi", fakeSMI, (*Driver).Version, checks.Pass, []string{"the driver supports CUDA 12.4"}},
		{"health from nvidia-smi", fakeSMI, (*Driver).Health, checks.Warn, []string{"the nvml helper is not in this binary", "nvidia-smi answers in its place"}},
		{"memory is not tested", fakeSMI, (*Driver).Memory, checks.Error, []string{"the cuda helper is not in this binary", "nvidia-smi lists 1 GPU, which proves nothing about memory"}},
		{"nvidia-smi fails", "echo NVIDIA-SMI has failed; exit 9", (*Driver).Version, checks.Fail, []string{"nvidia-smi failed: NVIDIA-SMI has failed"}},
		{"nothing is there", "", (*Driver).Version, checks.Error, []string{"neither NVML nor nvidia-smi could be asked"}},
		{"errors in nvidia-smi's rows", strings.Replace(fakeSMI, "81000, 0", "81000, 7", 1), (*Driver).Health, checks.Fail, []string{"GPU 0: 7 uncorrectable ECC errors"}},
		{"a reset is asked for in nvidia-smi's rows", strings.Replace(fakeSMI, "None\"", "Reset\"", 1), (*Driver).Health, checks.Fail, []string{"GPU 0: the driver asks for a recovery: Reset"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := machine{nodes: 1, helpers: none, smi: tt.smi}.start(t)
			res := run1(t, tt.check(d))
			require.Equal(t, tt.status, res.Status, res.Summary)
			for _, want := range tt.want {
				require.Contains(t, res.Summary, want)
			}
		})
	}
}

// nvidia-smi alone, as some images carry it, is asked; what it says decides.
func TestOnlyNvidiaSMI(t *testing.T) {
	for _, tt := range []struct {
		name, smi string
		status    checks.Status
		want      string
	}{
		{"it knows a GPU", fakeSMI, checks.Pass, "the driver supports CUDA 12.4"},
		{"it shows a driver", `[ -n "$1" ] || echo Driver Version: 535.1 CUDA Version: 12.2`, checks.Pass, "the driver supports CUDA 12.2"},
		{"it finds no driver", "echo NVIDIA-SMI has failed; exit 9", checks.Skip, "no GPU: there is nvidia-smi, but no device that it knows"},
		{"it does not answer", "sleep 600", checks.Fail, "driver tool did not answer in "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := machine{helpers: []Helper{}, smi: tt.smi}
			if tt.status == checks.Fail {
				m.config = []string{"RUNPOD_GPU_TEST_TIMEOUT=1"}
			}
			res := run1(t, m.start(t).Version())
			require.Equal(t, tt.status, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.want)
		})
	}
	t.Run("no device node is claimed", func(t *testing.T) {
		s := &survey{presence: presence{tool: "/usr/bin/nvidia-smi"}, cuda: listing{failure: &wire.Line{Step: wire.CUDALoad, State: wire.StateFail, Code: wire.CodeNoLibrary}}}
		found := s.unusable()
		require.Len(t, found, 1)
		require.NotContains(t, found[0].text, "node")
	})
}

func TestNvidiaSMIHangs(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	d := machine{
		nodes: 1, helpers: []Helper{}, config: []string{"RUNPOD_GPU_TEST_TIMEOUT=1"},
		smi: "trap '' TERM\nsleep 600 &\necho $! > " + pid + "\nsleep 600\n",
	}.start(t)
	for _, check := range []checks.Check{d.Version(), d.Health()} {
		res := run1(t, check)
		require.Equal(t, checks.Fail, res.Status)
		require.Contains(t, res.Summary, "driver tool did not answer in ")
		require.Equal(t, "TimeoutError", res.Kind)
	}
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(pid)
		return err != nil || exec.Command("kill", "-0", strings.TrimSpace(string(text))).Run() != nil
	}, time.Minute, 10*time.Millisecond, "no child is left")
}
