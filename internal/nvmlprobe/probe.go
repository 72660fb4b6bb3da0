//go:build linux && cgo

package nvmlprobe

import (
	"errors"
	"io"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// probe goes through the steps: load, init, list, the health of each GPU, and with until its events until that ends.
// NVML is not shut down: the process ends, and one call less can hang.
func probe(report *wire.Report, until io.Reader) {
	lib, ok := load(report)
	if !ok || !start(report, lib) {
		return
	}
	count, ok := list(report, lib)
	if !ok {
		return
	}
	var well []gpu
	for i := range count {
		if device, ok := health(report, lib, i); ok {
			well = append(well, device)
		}
	}
	if until != nil {
		watch(report, lib, well, until)
	}
}

// gpu is a GPU that answered.
type gpu struct {
	index  int
	uuid   string
	device nvml.Device
}

func load(report *wire.Report) (*library, bool) {
	step := report.Begin(wire.NVMLLoad, wire.NoGPU)
	lib, err := openLibrary()
	if err != nil {
		outcome := wire.Outcome{State: wire.StateFail, Call: "dlopen", Detail: err.Error()}
		if errors.Is(err, errNoLibrary) {
			outcome.Code = int(nvml.ERROR_LIBRARY_NOT_FOUND)
		}
		step.Done(outcome)
		return nil, false
	}
	step.Done(wire.Outcome{State: wire.StateOK, Detail: lib.name})
	return lib, true
}

func start(report *wire.Report, lib *library) bool {
	step := report.Begin(wire.NVMLInit, wire.NoGPU)
	if ret := lib.Init(); ret != nvml.SUCCESS {
		step.Done(failed("nvmlInit_v2", ret))
		return false
	}
	var driver wire.Driver
	driver.Version, _ = lib.SystemGetDriverVersion() // what it does not tell stays empty
	switch {
	case lib.has("nvmlSystemGetCudaDriverVersion_v2"):
		driver.CUDA, _ = lib.SystemGetCudaDriverVersion_v2()
	case lib.has("nvmlSystemGetCudaDriverVersion"):
		driver.CUDA, _ = lib.SystemGetCudaDriverVersion()
	}
	step.Done(wire.Outcome{State: wire.StateOK, Data: driver})
	return true
}

func list(report *wire.Report, lib *library) (int, bool) {
	step := report.Begin(wire.NVMLList, wire.NoGPU)
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		step.Done(failed("nvmlDeviceGetCount_v2", ret))
		return 0, false
	}
	step.Done(wire.Outcome{State: wire.StateOK, Data: wire.NVMLCount{Count: count}})
	return count, true
}

// health asks one GPU. What it said before it was lost is reported too: it tells which GPU that was.
func health(report *wire.Report, lib *library, index int) (gpu, bool) {
	step := report.Begin(wire.NVMLHealth, index)
	device, ret := lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		step.Done(failed("nvmlDeviceGetHandleByIndex_v2", ret))
		return gpu{}, false
	}
	found := wire.Health{Index: index, Missing: map[string]string{}}
	if call, ret := lib.examine(device, &found); ret != nvml.SUCCESS {
		outcome := failed(call, ret)
		outcome.Data = found
		step.Done(outcome)
		return gpu{}, false
	}
	step.Done(wire.Outcome{State: wire.StateOK, Data: found})
	return gpu{index, found.UUID, device}, true
}

func failed(call string, ret nvml.Return) wire.Outcome {
	return wire.Outcome{State: wire.StateFail, Call: call, Code: int(ret), Detail: ret.Error()}
}

// skipped is the outcome of a step that concerns extras only.
func skipped(call string, ret nvml.Return) wire.Outcome {
	return wire.Outcome{State: wire.StateSkip, Call: call, Code: int(ret), Detail: ret.Error()}
}
