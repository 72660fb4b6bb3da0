//go:build linux && cgo

package nvmlprobe

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// questions are what is asked of each GPU. Who it is comes first, so that one that is lost later can be named.
var questions = []question{
	{{"nvmlDeviceGetName", name}},
	{{"nvmlDeviceGetUUID", uuid}},
	{{"nvmlDeviceGetPciInfo_v3", pci}, {"nvmlDeviceGetPciInfo_v2", pci}, {"nvmlDeviceGetPciInfo", pci}},
	{{"nvmlDeviceGetFieldValues", recoveryAction}},
	{{"nvmlDeviceGetMemoryInfo", memory}},
	{{"nvmlDeviceGetEccMode", eccMode}},
	{{"nvmlDeviceGetTotalEccErrors", eccVolatile}},
	{{"nvmlDeviceGetTotalEccErrors", eccAggregate}},
	{{"nvmlDeviceGetRemappedRows", remappedRows}},
	{{"nvmlDeviceGetRetiredPages", pagesSBE}},
	{{"nvmlDeviceGetRetiredPages", pagesDBE}},
	{{"nvmlDeviceGetRetiredPagesPendingStatus", pagesPending}},
	{{"nvmlDeviceGetTemperature", temperature}},
	{{"nvmlDeviceGetTemperatureThreshold", slowdownAt}},
	{{"nvmlDeviceGetCurrentClocksEventReasons", eventReasons}, {"nvmlDeviceGetCurrentClocksThrottleReasons", throttleReasons}},
	{{"nvmlDeviceGetPersistenceMode", persistence}},
	{{"nvmlDeviceGetCurrPcieLinkWidth", pcieWidth}},
	{{"nvmlDeviceGetMaxPcieLinkWidth", pcieMaxWidth}},
	{{"nvmlDeviceGetCurrPcieLinkGeneration", pcieGen}},
	{{"nvmlDeviceGetMaxPcieLinkGeneration", pcieMaxGen}},
	{{"nvmlDeviceGetComputeMode", computeMode}},
	{{"nvmlDeviceGetGpuFabricInfoV", fabricV}, {"nvmlDeviceGetGpuFabricInfo", fabric}},
	{{"nvmlDeviceGetMigMode", migMode}},
}

func name(_ *library, d nvml.Device, h *wire.Health) (ret nvml.Return) {
	h.Name, ret = d.GetName()
	return ret
}

func uuid(_ *library, d nvml.Device, h *wire.Health) (ret nvml.Return) {
	h.UUID, ret = d.GetUUID()
	return ret
}

func pci(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	info, ret := d.GetPciInfo()
	h.PCI = cText(info.BusId[:])
	return ret
}

// cText is the text before the NUL.
func cText(s []int8) string {
	var text []byte
	for _, c := range s {
		if c == 0 {
			break
		}
		text = append(text, byte(c))
	}
	return string(text)
}

// recoveryAction is the driver's own verdict on what the GPU needs.
func recoveryAction(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	ret := d.GetFieldValues(values)
	if ret == nvml.SUCCESS {
		ret = nvml.Return(values[0].NvmlReturn)
	}
	return keep(&h.RecoveryAction, int(binary.NativeEndian.Uint32(values[0].Value[:])), ret)
}

func memory(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	m, ret := d.GetMemoryInfo()
	return keep(&h.Memory, wire.NVMLMemory(m), ret)
}

func eccMode(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	current, pending, ret := d.GetEccMode()
	if ret == nvml.SUCCESS {
		h.ECCMode, h.ECCPending = new(on(current)), new(on(pending))
	}
	return ret
}

func eccVolatile(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	n, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	return keep(&h.ECCVolatile, n, ret)
}

func eccAggregate(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	n, ret := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)
	return keep(&h.ECCAggregate, n, ret)
}

func remappedRows(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	corrected, uncorrected, pending, failed, ret := d.GetRemappedRows()
	if ret == nvml.SUCCESS {
		h.RowsCorrected, h.RowsUncorrected = &corrected, &uncorrected
		h.RowsPending, h.RowsFailed = &pending, &failed
	}
	return ret
}

func pagesSBE(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	pages, ret := d.GetRetiredPages(nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)
	return keep(&h.PagesSBE, len(pages), ret)
}

func pagesDBE(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	pages, ret := d.GetRetiredPages(nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
	return keep(&h.PagesDBE, len(pages), ret)
}

func pagesPending(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	pending, ret := d.GetRetiredPagesPendingStatus()
	return keep(&h.PagesPending, on(pending), ret)
}

func temperature(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	degrees, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
	return keep(&h.Temperature, int(degrees), ret)
}

func slowdownAt(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	degrees, ret := d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
	return keep(&h.SlowdownAt, int(degrees), ret)
}

func eventReasons(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	reasons, ret := d.GetCurrentClocksEventReasons()
	return keep(&h.ThrottleReasons, reasons, ret)
}

func throttleReasons(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	reasons, ret := d.GetCurrentClocksThrottleReasons()
	return keep(&h.ThrottleReasons, reasons, ret)
}

func persistence(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	mode, ret := d.GetPersistenceMode()
	return keep(&h.Persistence, on(mode), ret)
}

func pcieWidth(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	lanes, ret := d.GetCurrPcieLinkWidth()
	return keep(&h.PCIeWidth, lanes, ret)
}

func pcieMaxWidth(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	lanes, ret := d.GetMaxPcieLinkWidth()
	return keep(&h.PCIeMaxWidth, lanes, ret)
}

func pcieGen(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	generation, ret := d.GetCurrPcieLinkGeneration()
	return keep(&h.PCIeGen, generation, ret)
}

func pcieMaxGen(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	generation, ret := d.GetMaxPcieLinkGeneration()
	return keep(&h.PCIeMaxGen, generation, ret)
}

func computeMode(_ *library, d nvml.Device, h *wire.Health) nvml.Return {
	mode, ret := d.GetComputeMode()
	return keep(&h.ComputeMode, int(mode), ret)
}
