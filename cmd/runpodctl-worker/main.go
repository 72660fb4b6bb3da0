// Command runpodctl-worker runs Runpod serverless workers: at home, and in production.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"runpodctl-worker/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 3) // drain, stop, die: none may be missed
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it ignored
		signal.Notify(signals, syscall.SIGHUP) // the terminal is gone: what was started must not stay behind
	}
	// A log collector that goes away must not take the jobs along: writes to it fail, and nothing else. The signal
	// is caught, not ignored, since the handler's program would inherit that it is ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(cli.Main(cli.Process{
		Args:   os.Args,
		Lookup: os.LookupEnv, Environ: os.Environ,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Signals: signals,
		Exit:    os.Exit,
	}))
}
