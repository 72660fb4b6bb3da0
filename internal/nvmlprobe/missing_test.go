package nvmlprobe_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/test/gpufake"
)

// questions are the functions by which a GPU of a newer driver is asked, and what is unknown without each.
var questions = map[string]func(h *wire.Health){
	"nvmlDeviceGetName":                      func(h *wire.Health) { h.Name = "" },
	"nvmlDeviceGetUUID":                      func(h *wire.Health) { h.UUID = "" },
	"nvmlDeviceGetPciInfo_v3":                func(h *wire.Health) { h.PCI = "" },
	"nvmlDeviceGetFieldValues":               func(h *wire.Health) { h.RecoveryAction = nil },
	"nvmlDeviceGetMemoryInfo":                func(h *wire.Health) { h.Memory = nil },
	"nvmlDeviceGetEccMode":                   func(h *wire.Health) { h.ECCMode, h.ECCPending = nil, nil },
	"nvmlDeviceGetTotalEccErrors":            func(h *wire.Health) { h.ECCVolatile, h.ECCAggregate = nil, nil },
	"nvmlDeviceGetRetiredPages":              func(h *wire.Health) { h.PagesSBE, h.PagesDBE = nil, nil },
	"nvmlDeviceGetRetiredPagesPendingStatus": func(h *wire.Health) { h.PagesPending = nil },
	"nvmlDeviceGetTemperature":               func(h *wire.Health) { h.Temperature = nil },
	"nvmlDeviceGetTemperatureThreshold":      func(h *wire.Health) { h.SlowdownAt = nil },
	"nvmlDeviceGetCurrentClocksEventReasons": func(h *wire.Health) { h.ThrottleReasons = nil },
	"nvmlDeviceGetPersistenceMode":           func(h *wire.Health) { h.Persistence = nil },
	"nvmlDeviceGetCurrPcieLinkWidth":         func(h *wire.Health) { h.PCIeWidth = nil },
	"nvmlDeviceGetMaxPcieLinkWidth":          func(h *wire.Health) { h.PCIeMaxWidth = nil },
	"nvmlDeviceGetCurrPcieLinkGeneration":    func(h *wire.Health) { h.PCIeGen = nil },
	"nvmlDeviceGetMaxPcieLinkGeneration":     func(h *wire.Health) { h.PCIeMaxGen = nil },
	"nvmlDeviceGetComputeMode":               func(h *wire.Health) { h.ComputeMode = nil },
	"nvmlDeviceGetGpuFabricInfoV":            func(h *wire.Health) { h.FabricState, h.FabricSummary = nil, nil },
	"nvmlDeviceGetMigMode":                   func(h *wire.Health) { h.MIG, h.MIGPending = nil, nil },
	"nvmlDeviceGetRemappedRows": func(h *wire.Health) {
		h.RowsCorrected, h.RowsUncorrected, h.RowsPending, h.RowsFailed = nil, nil, nil, nil
	},
}

// words are answers that concern the question and not the GPU.
var words = map[int]string{
	2: "Invalid Argument", 3: "Not Supported", 4: "Insufficient Permissions", 6: "Not Found", 999: "Unknown Error",
}

// A question that is not answered is told with the reason; all others are asked.
func TestMissing_Answers(t *testing.T) {
	libs := gpufake.Build(t, gpufake.NVML)
	for function, without := range questions {
		for code, reason := range words {
			t.Run(function+" "+reason, func(t *testing.T) {
				rule := function + "=" + strconv.Itoa(code)
				got := box{libs: libs, rules: rule, gpus: 1}.run(t, "health")
				got.requireEnd(t)
				want := wellGPU(0)
				without(&want)
				want.Missing = map[string]string{function: reason}
				require.Equal(t, want, got.health(t, 0))
			})
		}
	}
}

// The recovery action is one of many fields: the call may work, and the field be unknown.
func TestMissing_Field(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVML), values: "recovery_answer=3", gpus: 1}
	h := b.run(t, "health").health(t, 0)
	require.Nil(t, h.RecoveryAction)
	require.Equal(t, map[string]string{"nvmlDeviceGetFieldValues": "Not Supported"}, h.Missing)
}

func TestMissing_OldDriver(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVMLOld), values: "throttle=4;fabric_state=3", gpus: 1}
	got := b.run(t, "health")
	got.requireEnd(t)
	want := wellGPU(0)
	want.ThrottleReasons = new(uint64(4))
	want.FabricState, want.FabricStatus, want.FabricSummary = new(3), new(0), nil
	want.RecoveryAction = nil
	want.Missing = map[string]string{"nvmlDeviceGetFieldValues": "Invalid Argument"}
	require.Equal(t, want, got.health(t, 0))
}

// Calling what a driver lacks would end the helper: everything but the oldest functions is looked up first.
func TestMissing_BareDriver(t *testing.T) {
	b := box{libs: gpufake.Build(t, gpufake.NVMLBare), gpus: 1}
	got := b.run(t, "watch")
	got.requireEnd(t)
	require.Equal(t, wire.Driver{Version: "550.54.15"}, data[wire.Driver](t, got.step(t, wire.NVMLInit, wire.NoGPU)))
	want := wire.Health{Name: "NVIDIA Fake 100", UUID: gpufake.UUID(0), Missing: map[string]string{}}
	for function := range questions {
		if !slices.Contains([]string{"nvmlDeviceGetName", "nvmlDeviceGetUUID"}, function) {
			want.Missing[function] = "not in this driver"
		}
	}
	require.Equal(t, want, got.health(t, 0))
	watch := got.step(t, wire.NVMLWatch, wire.NoGPU)
	require.Equal(t, wire.StateSkip, watch.State)
	require.Equal(t, "nvmlEventSetCreate", watch.Call)
	require.Equal(t, "not in this driver", watch.Detail)
}
