package gpu

import (
	"encoding/json"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// inventory is what the driver's management side says of itself and its GPUs: NVML, or nvidia-smi in its place.
type inventory struct {
	source  string // who speaks: "NVML" or "nvidia-smi"; empty: nobody does
	driver  wire.Driver
	count   int
	health  []wire.Health
	lost    []wire.Line // GPUs that could not be asked
	failure *wire.Line  // the step that failed before any GPU was asked
	err     error       // why there is no more than this
}

// cuda is the newest CUDA that the kernel's driver supports.
func (i inventory) cuda() checks.Version { return decodeCUDA(i.driver.CUDA) }

// decodeCUDA reads a version as the driver writes it: 12040 is 12.4.
func decodeCUDA(v int) checks.Version { return checks.Version{Major: v / 1000, Minor: v % 1000 / 10} }

func encodeCUDA(v checks.Version) int { return v.Major*1000 + v.Minor*10 }

// partitioned tells whether a GPU is divided into MIG slices.
func (i inventory) partitioned() bool {
	for _, h := range i.health {
		if h.MIG != nil && *h.MIG {
			return true
		}
	}
	return false
}

// inventoryOf reads the report of the NVML helper.
func inventoryOf(lines []wire.Line, err error) inventory {
	inv := inventory{source: "NVML", err: err}
	inv.driver, _ = data[wire.Driver](lines, wire.NVMLInit)
	count, _ := data[wire.NVMLCount](lines, wire.NVMLList)
	inv.count = count.Count
	for _, line := range lines {
		switch {
		case line.Step == wire.NVMLHealth && line.State == wire.StateFail:
			inv.lost = append(inv.lost, line)
		case line.Step == wire.NVMLHealth && line.State == wire.StateOK:
			var h wire.Health
			if json.Unmarshal(line.Data, &h) == nil {
				inv.health = append(inv.health, h)
			}
		case line.State == wire.StateFail && inv.failure == nil && line.Step != wire.NVMLWatch:
			inv.failure = &line
		}
	}
	return inv
}
