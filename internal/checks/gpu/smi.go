package gpu

import (
	"context"
	"errors"
	"strings"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// smiFields are what nvidia-smi is asked for each GPU, in this order. The last one is not known to older drivers.
var smiFields = []string{
	"index", "name", "uuid", "pci.bus_id", "memory.total", "memory.free", "ecc.errors.uncorrected.volatile.total",
	"mig.mode.current", "gpu_recovery_action",
}

// askSMI asks nvidia-smi, for where NVML cannot be asked. Each of its runs is bounded.
func askSMI(ctx context.Context, path string, environ []string) inventory {
	inv := inventory{source: tool}
	if path == "" {
		inv.err = errNoTool
		return inv
	}
	run := func(args ...string) (string, error) {
		return runTool(ctx, toolTime, environ, append([]string{path}, args...)...)
	}
	header, err := run()
	if err != nil {
		inv.err = err
		return inv
	}
	inv.driver = parseHeader(header)
	rows, err := run(query(smiFields)...)
	if refused(err, rows) {
		rows, err = run(query(smiFields[:len(smiFields)-1])...)
	}
	if err != nil {
		inv.err = err
		return inv
	}
	inv.health, inv.lost = parseRows(rows)
	inv.count = len(inv.health) + len(inv.lost)
	if inv.partitioned() {
		list, err := run("-L")
		if err != nil {
			inv.err = err
			return inv
		}
		addSlices(inv.health, list)
	}
	return inv
}

var errNoTool = errors.New("nvidia-smi is not here either")

func query(fields []string) []string {
	return []string{"--query-gpu=" + strings.Join(fields, ","), "--format=csv,noheader,nounits"}
}

// refused tells whether nvidia-smi does not know a field that was asked for.
func refused(err error, out string) bool {
	return err != nil && !silent(err) && strings.Contains(out, "not a valid field")
}

// lostCode is the code that NVML would have answered with, for a row whose values tell that the GPU is gone.
func lostCode(row string) int {
	switch {
	case strings.Contains(row, "GPU is lost"):
		return nvmlIsLost
	case strings.Contains(row, "GPU requires reset"):
		return nvmlResetRequired
	}
	return 0
}

func lostLine(index, code int) wire.Line {
	return wire.Line{Step: wire.NVMLHealth, State: wire.StateFail, GPU: index, Call: tool, Code: code}
}
