// Command chaos runs many jobs through the built worker and the built local Runpod, while a tenth of the worker's calls
// goes wrong, and prints what became of them; then it does the same while the worker, or its program, is killed again and
// again. It fails if a job was lost, or has two ends.
//
//	go run ./test/chaos -bin bin/runpodctl-worker
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	workerID     = "w1"
	pingInterval = "500" // milliseconds
	lease        = "2s"  // silence about a job for so long gives it to the next who asks
)

// options are what both trials are told.
type options struct {
	bin         string
	handler     string
	jobs, kills int
	concurrency int
	seed        uint64
	limit       time.Duration
	out         io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.bin, "bin", "bin/runpodctl-worker", "the binary to try")
	flag.StringVar(&o.handler, "handler", "test/handlers/chaos.py", "what runs the jobs")
	flag.IntVar(&o.jobs, "jobs", 10_000, "how many jobs while calls go wrong; 0 leaves that out")
	flag.IntVar(&o.kills, "kills", 100, "how many kills; 0 leaves that out")
	flag.IntVar(&o.concurrency, "concurrency", 64, "jobs at a time")
	flag.Uint64Var(&o.seed, "seed", 20260101, "of what goes wrong")
	flag.DurationVar(&o.limit, "limit", 30*time.Minute, "when to give up")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.jobs > 0 {
		if err := within(o, calls); err != nil {
			return err
		}
	}
	if o.kills > 0 {
		return within(o, kills)
	}
	return nil
}

// within makes a trial in a directory of its own, which stays if the trial fails: the logs are there.
func within(o options, trial func(o options, dir string) error) (err error) {
	for _, path := range []*string{&o.bin, &o.handler} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "runpodctl-worker-chaos-")
	if err != nil {
		return err
	}
	if err := trial(o, dir); err != nil {
		return fmt.Errorf("%w (the logs are in %s)", err, dir)
	}
	return os.RemoveAll(dir)
}
