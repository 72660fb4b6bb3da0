//go:build linux && cgo

package nvmlprobe

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// fabricV asks for the NVSwitch fabric, in the newest form that the driver knows. Only the third has a summary.
func fabricV(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	info, ret := d.GetGpuFabricInfoV().V3()
	if ret == nvml.SUCCESS {
		h.FabricSummary = new(int(info.HealthSummary))
		keepFabric(h, info.State, info.Status)
	}
	if ret != nvml.ERROR_ARGUMENT_VERSION_MISMATCH {
		return ret
	}
	older, ret := d.GetGpuFabricInfoV().V2()
	if ret == nvml.SUCCESS {
		keepFabric(h, older.State, older.Status)
	}
	return ret
}

func fabric(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	info, ret := d.GetGpuFabricInfo()
	if ret == nvml.SUCCESS {
		keepFabric(h, info.State, info.Status)
	}
	return ret
}

// keepFabric keeps the state; the status means something only once the fabric's set-up is over.
func keepFabric(h *wire.Health, state uint8, status uint32) {
	h.FabricState = new(int(state))
	if state == nvml.GPU_FABRIC_STATE_COMPLETED {
		h.FabricStatus = new(int(status))
	}
}
