// Package nvmlprobe is the helper program that asks NVML, NVIDIA's management library, how the GPUs are. It asks and
// reports, and judges nothing: verdicts are its parent's. Health questions that a driver does not answer are told
// with the reason, since a missing answer is no sickness.
package nvmlprobe

import (
	"fmt"
	"io"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// The modes of the program, as its first argument.
const (
	modeHealth = "health" // ask, and end
	modeWatch  = "watch"  // ask, then report the GPUs' events until stdin closes
)

// Exit codes. A sick GPU is a report, not a failure of this program.
const (
	exitOK    = 0
	exitMute  = 1 // the report could not be written
	exitUsage = 2
)

// Main runs the program and returns its exit code.
func Main(args []string, version string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 2 && args[1] == "--version" {
		fmt.Fprintln(stdout, "runpodctl-worker-nvml-probe", version)
		return exitOK
	}
	if len(args) != 2 || args[1] != modeHealth && args[1] != modeWatch {
		fmt.Fprintln(stderr, "usage: runpodctl-worker-nvml-probe health|watch|--version")
		return exitUsage
	}
	report, err := wire.OpenReport()
	if err != nil {
		fmt.Fprintln(stderr, "runpodctl-worker-nvml-probe:", err)
		return exitUsage
	}
	var until io.Reader
	if args[1] == modeWatch {
		until = stdin
	}
	probe(report, until)
	if err := report.End(); err != nil {
		fmt.Fprintln(stderr, "runpodctl-worker-nvml-probe: cannot report:", err)
		return exitMute
	}
	return exitOK
}
