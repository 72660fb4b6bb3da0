//go:build !linux || !cgo

package nvmlprobe

import (
	"io"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// probe says that this program cannot ask: go-nvml needs a C compiler, and NVML is there on Linux only.
func probe(report *wire.Report, _ io.Reader) {
	report.Begin(wire.NVMLLoad, wire.NoGPU).Done(wire.Outcome{State: wire.StateFail, Detail: "built without NVML"})
}
