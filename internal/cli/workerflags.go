package cli

import (
	"errors"
	"io/fs"
	"os/exec"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/offload"
	"runpodctl-worker/internal/ready"
	"runpodctl-worker/internal/worker"
)

// Flags of the commands that run a handler.
const (
	flagHandler     = "handler"
	flagPython      = "python"
	flagConcurrency = "concurrency"
	flagSyncThreads = "sync-threads"
	flagLinger      = "stop-linger"
	flagGrace       = "grace-period"
	flagReady       = "ready-timeout"
	flagRefresh     = "refresh-worker"
	flagAggregate   = "return-aggregate-stream"
	flagDebugger    = "rp_debugger"
	flagTestInput   = "test_input"
	flagTestOutput  = "test_output"
	flagMaxResult   = "max-result"
	flagMaxChunk    = "max-chunk"
	flagOffload     = "offload-outputs"
)

const (
	defaultLinger     = 500 * time.Millisecond
	maxErrorLogs      = 1000
	handlerStopPeriod = 10 * time.Second // from TERM to KILL for a program that is told to end
)

func handlerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagHandler, Usage: "`SPEC` of the handler: handler.py, handler.py:function or echo (default: $RUNPOD_HANDLER, handler.py, src/handler.py, rp_handler.py, src/rp_handler.py)"},
		&cli.StringFlag{Name: flagPython, Value: "python3", Usage: "interpreter (`EXE`) for --handler"},
		&cli.IntFlag{Name: flagConcurrency, Value: 1, Usage: "jobs at a time, for an async handler"},
		&cli.IntFlag{Name: flagSyncThreads, Value: 1, Usage: "threads for a handler that is not async; more than 1 only if it is thread-safe"},
		&cli.DurationFlag{Name: flagReady, Usage: "how long the handler may load; 0 = no limit (default: $RUNPOD_INIT_TIMEOUT seconds, else 420s)"},
		&cli.BoolFlag{Name: flagRefresh, Usage: "a fresh worker after every job, whatever the handler says"},
		&cli.BoolFlag{Name: flagAggregate, Usage: "the result of a generator carries all its items"},
		&cli.BoolFlag{Name: flagDebugger, Usage: "add timings to each output, under rp_debugger, as the SDK does"},
		&cli.IntFlag{Name: flagErrorLogs, Usage: "the error of a job that raised has the last `N` lines that it printed, under logs; 0 = none"},
	}
}

func jobFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagTestInput, Usage: "run this `JOB`, print it and end: JSON, a file, @file, or - for standard input"},
		&cli.StringFlag{Name: flagTestOutput, Usage: "with --test_input: the `OUTPUT` to expect, as JSON, a file, @file or -"},
	}
}

func stopFlags() []cli.Flag {
	return []cli.Flag{
		&cli.DurationFlag{Name: flagLinger, Value: defaultLinger, Usage: "how long a stopping worker keeps its open request for work, and runs what still comes"},
		&cli.DurationFlag{Name: flagGrace, Usage: "how long running jobs may take after the first signal; 0 = as long as they need"},
	}
}

// sizeFlags are the limits of what the platform takes from a worker. The local Runpod has them too.
func sizeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagMaxResult, Value: "20MB", Usage: "`SIZE` of the largest result that is posted; a larger one fails its job"},
		&cli.StringFlag{Name: flagMaxChunk, Value: "1MiB", Usage: "`SIZE` of the largest item of a stream that is posted; a larger one fails its job"},
	}
}

func offloadFlag() cli.Flag {
	return &cli.BoolFlag{Name: flagOffload, Usage: "the output of a result that is larger than --max-result goes to the S3-compatible storage of $BUCKET_ENDPOINT_URL, and clients get a signed URL of it"}
}

// workerOptions are the flags above, checked.
type workerOptions struct {
	spec                         handlerSpec
	python, logLevel             string
	concurrency, syncThreads     int
	readyTimeout                 time.Duration
	linger, grace                time.Duration
	refresh, aggregate, debugger bool
	maxResult, maxChunk          int              // bytes
	offload                      worker.Offloader // of larger results; nil: they fail
	errorLogs                    int              // lines of a job that its error carries

	// of run alone
	noShim, hideKey       bool
	pingEarly, failOnKill bool
	batch                 bool // of stream items
	jobTimeout            time.Duration
	maxCrashes            int // of one job; 0: the worker's default
	probes                []ready.Probe
	cache                 cacheOptions
	statePlaces           []string // for the journal, the best first; none: no journal
}

// readWorkerFlags checks the flags; initTimeout is the environment's word on how long loading may take.
func (s *session) readWorkerFlags(c *cli.Context, initTimeout time.Duration) (workerOptions, error) {
	o := workerOptions{
		python:       c.String(flagPython),
		logLevel:     c.String(flagLogLevel),
		concurrency:  c.Int(flagConcurrency),
		syncThreads:  c.Int(flagSyncThreads),
		readyTimeout: loadingTime(c, initTimeout),
		linger:       c.Duration(flagLinger),
		grace:        c.Duration(flagGrace),
		refresh:      c.Bool(flagRefresh),
		aggregate:    c.Bool(flagAggregate),
		debugger:     c.Bool(flagDebugger),
		errorLogs:    c.Int(flagErrorLogs),
	}
	if o.errorLogs < 0 || o.errorLogs > maxErrorLogs {
		return o, usagef("--%s %d: want 0 to %d", flagErrorLogs, o.errorLogs, maxErrorLogs)
	}
	for _, name := range []string{flagConcurrency, flagSyncThreads} {
		if n := c.Int(name); n < 1 || n > worker.MaxConcurrency {
			return o, usagef("--%s %d: want 1 to %d", name, n, worker.MaxConcurrency)
		}
	}
	err := refuseNegative(c, flagReady, flagLinger, flagGrace)
	if err != nil {
		return o, err
	}
	if o.maxResult, err = readSize(c, flagMaxResult); err != nil {
		return o, err
	}
	if o.maxChunk, err = readSize(c, flagMaxChunk); err != nil {
		return o, err
	}
	if c.Bool(flagOffload) {
		bucket, err := config.BucketFrom(s.Lookup)
		if err != nil {
			return o, usagef("--%s: %w", flagOffload, err)
		}
		o.offload = offload.New(bucket)
	}
	if o.spec, err = findHandler(c.String(flagHandler), s.command, s.Lookup); err != nil {
		return o, err
	}
	return o, o.checkProgram()
}

// loadingTime is how long a handler may load.
func loadingTime(c *cli.Context, initTimeout time.Duration) time.Duration {
	if c.IsSet(flagReady) {
		return c.Duration(flagReady)
	}
	return initTimeout
}

func readSize(c *cli.Context, name string) (int, error) {
	n, err := parseSize(c.String(name))
	if err != nil || n == 0 {
		return 0, usagef("--%s %s: want a size such as 1MiB", name, c.String(name))
	}
	return int(n), nil
}

// checkProgram finds out early, and in plain words, that there is nothing to start.
func (o workerOptions) checkProgram() error {
	switch {
	case o.spec.file != "":
		if _, err := exec.LookPath(o.python); err != nil {
			return usagef("--%s %s: %w", flagPython, o.python, lookError(err))
		}
	case len(o.spec.command) > 0:
		if _, err := exec.LookPath(o.spec.command[0]); err != nil {
			return usagef("%s: %w", o.spec.command[0], lookError(err))
		}
	}
	return nil
}

func lookError(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return errors.Unwrap(err) // of an *exec.Error, which names the program again
}
