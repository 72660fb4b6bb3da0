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

const program = "runpodctl-worker-nvml-probe"

// Set by the linker: -X runpodctl-worker/internal/nvmlprobe.version=…
var version = "0.0.0-dev"

// Main is the program: it returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		return misused(stderr)
	}
	var until io.Reader
	switch args[0] {
	case "--version":
		fmt.Fprintln(stdout, program, version)
		return exitOK
	case modeHealth:
	case modeWatch:
		until = stdin
	default:
		return misused(stderr)
	}
	report, err := wire.OpenReport()
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return exitUsage
	}
	probe(report, until)
	if err := report.End(); err != nil {
		fmt.Fprintf(stderr, "%s: cannot report: %v\n", program, err)
		return exitMute
	}
	return exitOK
}

func misused(stderr io.Writer) int {
	fmt.Fprintf(stderr, "usage: %s %s|%s|--version\n", program, modeHealth, modeWatch)
	return exitUsage
}
