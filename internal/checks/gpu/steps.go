package gpu

import (
	"strings"
	"time"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// How long things may take before a helper is killed. A healthy driver needs a hundredth of it; a cold one without
// persistence mode a tenth.
const (
	startTime  = 10 * time.Second // from its start to its first step, and between two steps
	exitTime   = 10 * time.Second // the driver tears its contexts down at exit
	briefTime  = 10 * time.Second // of a step that is quick unless something hangs
	drainTime  = time.Second      // for what is left in the pipe when the helper has ended
	toolTime   = 10 * time.Second // of nvidia-smi
	nvccTime   = 5 * time.Second
	fabricTime = 2 * time.Second // between two looks at a fabric that is not ready
)

// step is what a helper does, and how long it may.
type step struct {
	words string
	limit time.Duration
}

var steps = map[wire.Step]step{
	wire.CUDALoad:     {"loading libcuda", briefTime},
	wire.CUDAInit:     {"initialising CUDA", 30 * time.Second},
	wire.CUDAList:     {"listing GPUs with CUDA", briefTime},
	wire.CUDAContext:  {"creating a context", 20 * time.Second},
	wire.CUDAMemory:   {"testing memory", briefTime},
	wire.CUDAFill:     {"testing a larger part of the memory", briefTime},
	wire.CUDACompile:  {"compiling the test's kernel", briefTime},
	wire.CUDACompute:  {"multiplying matrices", briefTime},
	wire.CUDAPeer:     {"copying to another GPU", briefTime},
	wire.CUDATeardown: {"releasing the context", briefTime},
	wire.NVMLLoad:     {"loading libnvidia-ml", briefTime},
	wire.NVMLInit:     {"initialising NVML", 30 * time.Second},
	wire.NVMLList:     {"listing GPUs with NVML", briefTime},
	wire.NVMLHealth:   {"asking for health", 15 * time.Second},
	wire.NVMLWatch:    {"waiting for events", briefTime},
	wire.NVMLEvent:    {"reading events", briefTime},
}

// doing says in words what a step does; an unknown one goes by its own name.
func doing(s wire.Step) string {
	if known, ok := steps[s]; ok {
		return known.words
	}
	return string(s)
}

func isNVML(s wire.Step) bool { return strings.HasPrefix(string(s), "nvml.") }
