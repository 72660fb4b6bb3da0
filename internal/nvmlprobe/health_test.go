package nvmlprobe_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

// What the driver says comes through as it is: one GPU that has something, beside one that is well.
func TestHealth_Findings(t *testing.T) {
	libs := gpufake.Build(t, gpufake.NVML)
	for _, test := range []struct {
		name   string
		values string // of GPU 1
		want   func(h *wire.Health)
	}{
		{"nothing", "", func(*wire.Health) {}},
		{"uncorrected ECC errors", "1.ecc_volatile=3;1.ecc_aggregate=7", func(h *wire.Health) {
			h.ECCVolatile, h.ECCAggregate = new(uint64(3)), new(uint64(7))
		}},
		{"ECC goes off at the next reset", "1.ecc_mode_pending=0", func(h *wire.Health) { h.ECCPending = new(false) }},
		{"rows failed", "1.rows_failed=1;1.rows_unc=2;1.rows_corr=1", func(h *wire.Health) {
			h.RowsFailed, h.RowsUncorrected, h.RowsCorrected = new(true), new(2), new(1)
		}},
		{"rows pending", "1.rows_pending=1", func(h *wire.Health) { h.RowsPending = new(true) }},
		{"pages retired", "1.pages_sbe=63;1.pages_dbe=1;1.pages_pending=1", func(h *wire.Health) {
			h.PagesSBE, h.PagesDBE, h.PagesPending = new(63), new(1), new(true)
		}},
		{"hot and throttled", "1.temp=91;1.throttle=0x48", func(h *wire.Health) {
			h.Temperature, h.ThrottleReasons = new(91), new(uint64(0x48))
		}},
		{"half of the lanes", "1.pcie_width=8;1.pcie_gen=1", func(h *wire.Health) {
			h.PCIeWidth, h.PCIeGen = new(8), new(1)
		}},
		{"no persistence", "1.persistence=0", func(h *wire.Health) { h.Persistence = new(false) }},
		{"one process only", "1.compute_mode=3", func(h *wire.Health) { h.ComputeMode = new(3) }},
		{"asks for a reset", "1.recovery=4", func(h *wire.Health) { h.RecoveryAction = new(4) }},
		{"fabric in progress", "1.fabric_state=2;1.fabric_status=5", func(h *wire.Health) { h.FabricState = new(2) }},
		{"fabric set up, unhealthy", "1.fabric_state=3;1.fabric_summary=2", func(h *wire.Health) {
			h.FabricState, h.FabricStatus, h.FabricSummary = new(3), new(0), new(2)
		}},
		{"fabric set up with an error", "1.fabric_state=3;1.fabric_status=999;1.fabric_summary=2", func(h *wire.Health) {
			h.FabricState, h.FabricStatus, h.FabricSummary = new(3), new(999), new(2)
		}},
		{"fabric of an older form", "1.fabric_version=2;1.fabric_state=3", func(h *wire.Health) {
			h.FabricState, h.FabricStatus, h.FabricSummary = new(3), new(0), nil
		}},
		{"MIG pending", "1.mig_pending=1", func(h *wire.Health) { h.MIGPending = new(true) }},
		{"MIG without slices", "1.mig=0", func(h *wire.Health) { h.MIG, h.MIGPending = new(true), new(true) }},
		{"two MIG slices", "1.mig=2", func(h *wire.Health) {
			h.MIG, h.MIGPending = new(true), new(true)
			h.MIGDevices = []string{gpufake.SliceUUID(1, 0), gpufake.SliceUUID(1, 1)}
			h.MIGMemory = map[string]wire.NVMLMemory{h.MIGDevices[0]: *h.Memory, h.MIGDevices[1]: *h.Memory}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := box{libs: libs, values: test.values, gpus: 2}.run(t, "health")
			got.requireEnd(t)
			driver := data[wire.Driver](t, got.step(t, wire.NVMLInit, wire.NoGPU))
			require.Equal(t, wire.Driver{Version: "550.54.15", CUDA: 12040}, driver)
			require.Equal(t, wire.NVMLCount{Count: 2}, data[wire.NVMLCount](t, got.step(t, wire.NVMLList, wire.NoGPU)))
			require.Equal(t, wellGPU(0), got.health(t, 0))
			want := wellGPU(1)
			test.want(&want)
			require.Equal(t, want, got.health(t, 1))
		})
	}
}

// wellGPU is the health of a fake GPU to which no value does harm.
func wellGPU(index int) wire.Health {
	const mib = 1 << 20
	return wire.Health{
		Index: index, Name: "NVIDIA Fake 100", UUID: gpufake.UUID(index), PCI: []string{"00000000:1A:00.0", "00000000:1B:00.0"}[index],
		Memory:  &wire.NVMLMemory{Total: 512 * mib, Free: 480 * mib, Used: 32 * mib},
		ECCMode: new(true), ECCPending: new(true), ECCVolatile: new(uint64(0)), ECCAggregate: new(uint64(0)),
		RowsCorrected: new(0), RowsUncorrected: new(0), RowsPending: new(false), RowsFailed: new(false),
		PagesSBE: new(0), PagesDBE: new(0), PagesPending: new(false),
		Temperature: new(40), SlowdownAt: new(87), ThrottleReasons: new(uint64(1)), Persistence: new(true),
		PCIeWidth: new(16), PCIeMaxWidth: new(16), PCIeGen: new(5), PCIeMaxGen: new(5),
		MIG: new(false), MIGPending: new(false), ComputeMode: new(0),
		FabricState: new(0), FabricSummary: new(0), RecoveryAction: new(0),
	}
}

// A driver that cannot be used, or a GPU that has gone, is a verdict: told in a line, and the rest goes on.
func TestHealth_Failures(t *testing.T) {
	libs := gpufake.Build(t, gpufake.NVML)
	for _, test := range []struct {
		name   string
		rule   string
		step   wire.Step // that fails
		gpu    int
		call   string
		code   int
		detail string
		others bool // GPU 0 is examined all the same
	}{
		{"driver not loaded", "nvmlInit_v2=9", wire.NVMLInit, wire.NoGPU, "nvmlInit_v2", 9, "Driver Not Loaded", false},
		{"library and driver differ", "nvmlInit_v2=18", wire.NVMLInit, wire.NoGPU, "nvmlInit_v2", 18, "Driver/library version mismatch", false},
		{"blocked", "nvmlInit_v2=999", wire.NVMLInit, wire.NoGPU, "nvmlInit_v2", 999, "Unknown Error", false},
		{"cannot count", "nvmlDeviceGetCount_v2=999", wire.NVMLList, wire.NoGPU, "nvmlDeviceGetCount_v2", 999, "Unknown Error", false},
		{"lost before it was found", "nvmlDeviceGetHandleByIndex_v2@1=15", wire.NVMLHealth, 1, "nvmlDeviceGetHandleByIndex_v2", 15, "GPU is lost", true},
		{"no handle", "nvmlDeviceGetHandleByIndex_v2@1=999", wire.NVMLHealth, 1, "nvmlDeviceGetHandleByIndex_v2", 999, "Unknown Error", true},
		{"lost while asked", "nvmlDeviceGetTemperature@1=15", wire.NVMLHealth, 1, "nvmlDeviceGetTemperature", 15, "GPU is lost", true},
		{"wants a reset", "nvmlDeviceGetMemoryInfo@1=16", wire.NVMLHealth, 1, "nvmlDeviceGetMemoryInfo", 16, "GPU requires reset", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := box{libs: libs, rules: test.rule, gpus: 2}.run(t, "health")
			got.requireEnd(t)
			line := got.step(t, test.step, test.gpu)
			require.Equal(t, failure(test.call, test.code, test.detail), verdict(line))
			if test.others {
				require.Equal(t, wellGPU(0), got.health(t, 0))
			} else {
				require.Equal(t, line, got.lines[len(got.lines)-2], "nothing more is asked")
			}
		})
	}
}

func failure(call string, code int, detail string) wire.Line {
	return wire.Line{State: wire.StateFail, Call: call, Code: code, Detail: detail}
}

// A GPU that is lost while it is asked is known by what it said before.
func TestHealth_LostGPUHasAName(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVML), rules: "nvmlDeviceGetTemperature=15", gpus: 1}
	h := data[wire.Health](t, b.run(t, "health").step(t, wire.NVMLHealth, 0))
	require.Equal(t, gpufake.UUID(0), h.UUID)
	require.Equal(t, "00000000:1A:00.0", h.PCI)
	require.Nil(t, h.Temperature)
}

// A driver crash is a death: no end, and an exit code of its own. The step that was announced tells where.
func TestHealth_DriverCrashes(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVML), rules: "nvmlDeviceGetEccMode@1=segv", gpus: 2}
	got := b.run(t, "health")
	require.Equal(t, 2, got.exit)
	require.Contains(t, got.stderr, "SIGSEGV")
	require.Equal(t, wellGPU(0), got.health(t, 0))
	require.Equal(t, wire.Line{Step: wire.NVMLHealth, State: wire.StateBegin, GPU: 1}, got.lines[len(got.lines)-1])
}
