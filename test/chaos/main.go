// Command chaos runs many jobs through the built worker and the built local Runpod, while a tenth of the worker's calls
// goes wrong, and prints what became of them. It fails if a job was lost, or has two ends.
//
//	go run ./test/chaos -bin bin/runpodctl-worker
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	workerID     = "w1"
	pingInterval = "500" // milliseconds
	lease        = "2s"  // silence about a job for so long gives it to the next who asks
	retries      = "5"
	patience     = time.Minute // for what has to start or end
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func run() error {
	bin := flag.String("bin", "bin/runpodctl-worker", "the binary to try")
	jobs := flag.Int("jobs", 10_000, "how many jobs")
	concurrency := flag.Int("concurrency", 64, "jobs at a time")
	seed := flag.Uint64("seed", 20260101, "of what goes wrong")
	limit := flag.Duration("limit", 30*time.Minute, "when to give up")
	flag.Parse()
	path, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "runpodctl-worker-chaos-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	platform, err := startPlatform(path, dir, *seed)
	if err != nil {
		return err
	}
	defer platform.stop()
	ends, err := listen()
	if err != nil {
		return err
	}
	defer ends.close()
	began := time.Now()
	ids, err := platform.submit(*jobs, ends.url)
	if err != nil {
		return err
	}
	worker, err := platform.startWorker(path, dir, *concurrency)
	if err != nil {
		return err
	}
	defer worker.stop()
	if err := platform.awaitEnds(*jobs, *limit, worker); err != nil {
		return err
	}
	took := time.Since(began)
	code, err := worker.drain()
	if err != nil {
		return err
	}
	report, err := platform.examine(ids, ends)
	if err != nil {
		return err
	}
	report.took, report.exit = took, code
	report.write(os.Stdout)
	return report.verdict()
}

// startWorker starts the worker with a Python handler, which gives back what it gets.
func (p *platform) startWorker(bin, dir string, concurrency int) (*process, error) {
	if _, err := exec.LookPath("python3"); err != nil {
		return nil, err
	}
	handler, err := filepath.Abs("test/handlers/echo_async.py")
	if err != nil {
		return nil, err
	}
	at := func(call, ids string) string { return p.url + "/v2/local/" + call + "/" + ids + "?gpu=none" }
	env := []string{
		"RUNPOD_WEBHOOK_GET_JOB=" + at("job-take", "$ID"),
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + at("job-done", "$RUNPOD_POD_ID/$ID"),
		"RUNPOD_WEBHOOK_POST_STREAM=" + at("job-stream", "$RUNPOD_POD_ID/$ID"),
		"RUNPOD_WEBHOOK_PING=" + at("ping", "$RUNPOD_POD_ID"),
		"RUNPOD_PING_INTERVAL=" + pingInterval, "RUNPOD_POD_ID=" + workerID, "RUNPOD_AI_API_KEY=key",
		"RUNPOD_SKIP_FITNESS_CHECKS=true",
	}
	return start(dir, env, bin, "run", "--log-level", "warn", "--concurrency", fmt.Sprint(concurrency), "--handler", handler)
}

// drain asks the worker to end, and returns its exit code.
func (p *process) drain() (int, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, fmt.Errorf("the worker has ended already: %w: %s", err, p.tail())
	}
	select {
	case <-p.gone:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience):
		return 0, fmt.Errorf("the worker does not end: %s", p.tail())
	}
}
