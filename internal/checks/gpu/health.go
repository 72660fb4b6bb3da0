package gpu

import (
	"fmt"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// recovery is what NVIDIA's driver asks for, its own verdict on a GPU.
type recovery struct {
	words  string // as nvidia-smi prints them
	remedy string
}

var recoveryActions = []recovery{
	{words: "None"},
	{"Reset", "Reset the GPU (nvidia-smi --gpu-reset), or reboot."},
	{"Reboot", "Reboot the host."},
	{"Drain P2P", "Drain the machine's peer-to-peer traffic, then reset the GPU."},
	{"Drain and Reset", "Drain the machine, then reset the GPU."},
	{"Recover IMEX Domain", "Restart the IMEX service of the domain on the host."},
}

// The limits above which memory counts as worn out, those of NVIDIA's own diagnostics.
const (
	maxRetiredPages      = 63
	maxUncorrectableRows = 512
)

// throttles are the reasons for a slow clock that deserve a word, bits of nvmlClocksEventReasons.
var throttles = []struct {
	bit  uint64
	text string
}{
	{0x08, "hardware slowdown"},
	{0x40, "hardware thermal slowdown"},
	{0x80, "power brake"},
}

// sign is something in a GPU's health to look for.
type sign struct {
	name   string
	status checks.Status
	look   func(h wire.Health) string // what is wrong; empty: nothing, or not known
	remedy string
}

// signs holds only definite answers: what NVML did not answer says nothing.
var signs = []sign{
	{"recovery action", checks.Fail, func(h wire.Health) string {
		if n := h.RecoveryAction; n != nil && *n > 0 {
			if *n < len(recoveryActions) {
				return "the driver asks for a recovery: " + recoveryActions[*n].words
			}
			return fmt.Sprintf("the driver asks for recovery action %d", *n)
		}
		return ""
	}, "Do what the driver asks for: nvidia-smi -q shows it as GPU Recovery Action."},
	{"uncorrectable errors", checks.Fail, func(h wire.Health) string {
		if n := h.ECCVolatile; n != nil && *n > 0 {
			return fmt.Sprintf("%d uncorrectable ECC errors since the driver was loaded", *n)
		}
		return ""
	}, remedyMemory},
	{"row remapping failed", checks.Fail, func(h wire.Health) string {
		return when(h.RowsFailed, "a row remapping failed: the memory is damaged")
	}, "Have the board replaced."},
	{"worn rows", checks.Fail, func(h wire.Health) string {
		return above(h.RowsUncorrected, maxUncorrectableRows-1, "memory rows remapped for uncorrectable errors")
	}, "Run the field diagnostic; have the board replaced."},
	{"worn pages", checks.Fail, func(h wire.Health) string {
		if h.PagesSBE == nil && h.PagesDBE == nil {
			return ""
		}
		pages := value(h.PagesSBE) + value(h.PagesDBE)
		return above(&pages, maxRetiredPages-1, "memory pages retired")
	}, "Run the field diagnostic; have the board replaced."},
	{"too hot", checks.Fail, func(h wire.Health) string {
		if h.Temperature != nil && h.SlowdownAt != nil && *h.SlowdownAt > 0 && *h.Temperature >= *h.SlowdownAt {
			return fmt.Sprintf("too hot: %d °C (it slows down at %d)", *h.Temperature, *h.SlowdownAt)
		}
		return ""
	}, "Look at the cooling."},
	{"fabric unhealthy", checks.Fail, func(h wire.Health) string {
		if value(h.FabricState) == fabricCompleted && value(h.FabricSummary) == fabricUnhealthy {
			return "the NVSwitch fabric reports it as unhealthy"
		}
		return ""
	}, remedyFabric},
	{"fabric limited", checks.Warn, func(h wire.Health) string {
		if value(h.FabricState) == fabricCompleted && value(h.FabricSummary) == fabricLimited {
			return "the NVSwitch fabric gives it limited capacity"
		}
		return ""
	}, remedyFabric},
	{"fabric not ready", checks.Warn, func(h wire.Health) string {
		switch value(h.FabricState) {
		case fabricNotStarted:
			return "its NVSwitch fabric has not been set up"
		case fabricInProgress:
			return "its NVSwitch fabric is still being set up"
		}
		return ""
	}, remedyFabric},
	{"no slices", checks.Fail, func(h wire.Health) string {
		if h.MIG != nil && *h.MIG && len(h.MIGDevices) == 0 {
			return "MIG is on, and there is no instance"
		}
		return ""
	}, "Create MIG instances on the host (nvidia-smi mig -cgi … -C), or turn MIG off; pass one to this container."},
	{"compute prohibited", checks.Fail, func(h wire.Health) string {
		if value(h.ComputeMode) == computeProhibited {
			return "computing is prohibited"
		}
		return ""
	}, "Allow it: nvidia-smi -c DEFAULT."},
	{"remap pending", checks.Warn, func(h wire.Health) string {
		return when(h.RowsPending, "a row remapping waits for the next reset")
	}, "It works. Reset the GPU when it is idle."},
	{"retirement pending", checks.Warn, func(h wire.Health) string {
		return when(h.PagesPending, "a page retirement waits for the next reset")
	}, "It works. Reset the GPU when it is idle."},
	{"throttled", checks.Warn, func(h wire.Health) string {
		for _, t := range throttles {
			if h.ThrottleReasons != nil && *h.ThrottleReasons&t.bit != 0 {
				return "it is throttled: " + t.text
			}
		}
		return ""
	}, "Look at cooling and power supply; a power brake comes from the supply."},
	{"narrow link", checks.Warn, func(h wire.Health) string {
		if h.PCIeWidth != nil && h.PCIeMaxWidth != nil && *h.PCIeWidth > 0 && *h.PCIeWidth < *h.PCIeMaxWidth {
			return fmt.Sprintf("its PCIe link has %d of %d lanes", *h.PCIeWidth, *h.PCIeMaxWidth)
		}
		return ""
	}, "Re-seat the board; some machines wire fewer lanes."},
	{"setting pending", checks.Warn, func(h wire.Health) string {
		switch {
		case h.MIG != nil && h.MIGPending != nil && *h.MIG != *h.MIGPending:
			return "a change of MIG waits for the next reset"
		case h.ECCMode != nil && h.ECCPending != nil && *h.ECCMode != *h.ECCPending:
			return "a change of ECC waits for the next reset"
		}
		return ""
	}, "Reset the GPU when it is idle."},
}

// What NVML's numbers mean.
const (
	computeProhibited = 2

	fabricNotStarted = 1
	fabricInProgress = 2
	fabricCompleted  = 3
	fabricUnhealthy  = 2
	fabricLimited    = 3
)

// examine lists what is wrong with a GPU.
func examine(h wire.Health) []finding {
	var found []finding
	for _, s := range signs {
		if text := s.look(h); text != "" {
			found = append(found, finding{status: s.status, unit: unitName(h.Index), text: text, remedy: s.remedy})
		}
	}
	return found
}

func unitName(index int) string {
	if index < 0 {
		return ""
	}
	return fmt.Sprintf("GPU %d", index)
}

func when(is *bool, text string) string {
	if is != nil && *is {
		return text
	}
	return ""
}

func above(n *int, limit int, what string) string {
	if n != nil && *n > limit {
		return fmt.Sprintf("%d %s", *n, what)
	}
	return ""
}

// value is a number that was answered, 0 where it was not.
func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
