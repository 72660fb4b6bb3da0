//go:build linux && cgo

package nvmlprobe

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// migMode asks whether the GPU is cut into MIG slices, and if it is, for those.
func migMode(l *library, d nvml.Device, h *wire.Health) nvml.Return {
	current, pending, ret := d.GetMigMode()
	if ret != nvml.SUCCESS {
		return ret
	}
	h.MIG, h.MIGPending = new(current == nvml.DEVICE_MIG_ENABLE), new(pending == nvml.DEVICE_MIG_ENABLE)
	if !*h.MIG {
		return nvml.SUCCESS
	}
	for _, symbol := range []string{"nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"} {
		if !l.has(symbol) {
			h.Missing[symbol] = notHere
			return nvml.SUCCESS
		}
	}
	return migSlices(l, d, h)
}

// migSlices lists the slices with their memory. Slices that were destroyed leave gaps in the numbering.
func migSlices(l *library, d nvml.Device, h *wire.Health) nvml.Return {
	places, ret := d.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return ret
	}
	h.MIGMemory = map[string]wire.NVMLMemory{}
	for i := range places {
		slice, ret := d.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND {
			continue
		}
		if ret != nvml.SUCCESS {
			return ret
		}
		uuid, ret := slice.GetUUID()
		if ret != nvml.SUCCESS {
			return ret
		}
		h.MIGDevices = append(h.MIGDevices, uuid)
		if !l.has("nvmlDeviceGetMemoryInfo") {
			continue
		}
		if memory, ret := slice.GetMemoryInfo(); ret == nvml.SUCCESS {
			h.MIGMemory[uuid] = wire.NVMLMemory(memory)
		}
	}
	return nvml.SUCCESS
}
