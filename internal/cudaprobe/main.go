// Package cudaprobe is the helper program that tests GPUs through the CUDA driver. It does one thing of those that its
// first argument names, and reports each step before and after it on a descriptor that its parent reads.
package cudaprobe

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

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
	pipe, err := reportPipe()
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v; this program is started by runpodctl-worker\n", program, err)
		return exitUsage
	}
	s := &session{report: &report{to: pipe}}
	run(s)
	if err := s.report.end(); err != nil {
		fmt.Fprintf(stderr, "%s: report: %v\n", program, err)
		return exitFailed
	}
	return 0
}

// reportPipe is the descriptor to report on, which the driver's own helpers must not inherit: a parent would wait for
// them.
func reportPipe() (*os.File, error) {
	flags, err := unix.FcntlInt(wire.ReportFD, unix.F_GETFD, 0)
	// What a process is given is never close-on-exec; a descriptor that is belongs to the Go runtime.
	if err != nil || flags&unix.FD_CLOEXEC != 0 {
		return nil, fmt.Errorf("nobody reads descriptor %d", wire.ReportFD)
	}
	unix.CloseOnExec(wire.ReportFD)
	return os.NewFile(wire.ReportFD, "report"), nil
}
