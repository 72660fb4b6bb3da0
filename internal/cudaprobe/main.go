// Package cudaprobe is the helper program that tests GPUs through the CUDA driver. It does one thing of those that its
// first argument names, and reports each step before and after it on a descriptor that its parent reads.
package cudaprobe

import (
	"fmt"
	"io"
	"runtime"
	"slices"

	"runpodctl-worker/internal/checks/gpu/wire"
)

const program = "runpodctl-worker-cuda-probe"

// Set by the linker: -X runpodctl-worker/internal/cudaprobe.version=…
var version = "0.0.0-dev"

const (
	exitFailed = 1 // it could not report
	exitUsage  = 2
)

// Main is the program: it returns the exit code. What a test finds is for the report and no failure of the program.
func Main(args []string, stdout, stderr io.Writer) int {
	runtime.LockOSThread() // a CUDA context is current on one thread only
	switch {
	case slices.Equal(args, []string{"--version"}):
		fmt.Fprintln(stdout, program, version)
		return 0
	case slices.Equal(args, []string{"--help"}), slices.Equal(args, []string{"-h"}):
		fmt.Fprint(stdout, usage)
		return 0
	}
	run, err := parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v; see --help\n", program, err)
		return exitUsage
	}
	pipe, err := wire.OpenReport()
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return exitUsage
	}
	s := &session{report: report{pipe}}
	run(s)
	if err := s.report.End(); err != nil {
		fmt.Fprintf(stderr, "%s: report: %v\n", program, err)
		return exitFailed
	}
	return 0
}
