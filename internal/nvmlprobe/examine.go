//go:build linux && cgo

package nvmlprobe

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// way is one function of NVML that answers a question.
type way struct {
	symbol string
	ask    func(*library, nvml.Device, *wire.Health) nvml.Return
}

// question is something to know about a GPU, with the ways to ask it, newest first.
type question []way

// notHere says why a question was not asked.
const notHere = "not in this driver"

// lost are the answers that speak of the GPU itself, whatever was asked. Any other failure, be it that the question
// is not supported, not permitted or not understood, concerns this question only: virtual GPUs, sandboxes and
// consumer cards leave many without an answer.
var lost = []nvml.Return{
	nvml.ERROR_UNINITIALIZED, nvml.ERROR_INSUFFICIENT_POWER, nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_IRQ_ISSUE,
	nvml.ERROR_CORRUPTED_INFOROM, nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED,
	nvml.ERROR_LIB_RM_VERSION_MISMATCH,
}

// examine asks a GPU all questions, and ends early with the call that found it lost.
func (l *library) examine(device nvml.Device, h *wire.Health) (call string, ret nvml.Return) {
	for _, q := range questions {
		i := slices.IndexFunc(q, func(w way) bool { return l.has(w.symbol) })
		if i < 0 {
			h.Missing[q[0].symbol] = notHere
			continue
		}
		ret := q[i].ask(l, device, h)
		switch {
		case slices.Contains(lost, ret):
			return q[i].symbol, ret
		case ret != nvml.SUCCESS:
			h.Missing[q[i].symbol] = ret.Error()
		}
	}
	return "", nvml.SUCCESS
}

// keep fills in a field of the health, if it was answered.
func keep[T any](field **T, answer T, ret nvml.Return) nvml.Return {
	if ret == nvml.SUCCESS {
		*field = &answer
	}
	return ret
}

func on(state nvml.EnableState) bool { return state == nvml.FEATURE_ENABLED }
