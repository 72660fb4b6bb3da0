package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"runpodctl-worker/test/child"
)

// Places below the directory of a trial.
const (
	stateName = "state"
	tempName  = "tmp"
	runsName  = "runs"
)

// startWorker starts the worker with a Python handler. All of its lives have the same places.
func (p *platform) startWorker(o options, dir string) (*child.Process, error) {
	if _, err := exec.LookPath("python3"); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, tempName), 0o700); err != nil {
		return nil, err
	}
	at := func(call, ids string) string { return p.url + "/v2/local/" + call + "/" + ids + "?gpu=none" }
	env := []string{
		"RUNPOD_WEBHOOK_GET_JOB=" + at("job-take", "$ID"),
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + at("job-done", "$RUNPOD_POD_ID/$ID"),
		"RUNPOD_WEBHOOK_POST_STREAM=" + at("job-stream", "$RUNPOD_POD_ID/$ID"),
		"RUNPOD_WEBHOOK_PING=" + at("ping", "$RUNPOD_POD_ID"),
		"RUNPOD_PING_INTERVAL=" + pingInterval, "RUNPOD_POD_ID=" + workerID, "RUNPOD_AI_API_KEY=key",
		"RUNPOD_SKIP_FITNESS_CHECKS=true", "TMPDIR=" + filepath.Join(dir, tempName), "RUNS=" + filepath.Join(dir, runsName),
	}
	return child.Start(dir, env, o.bin, "run", "--log-level", "warn", "--concurrency", strconv.Itoa(o.concurrency),
		"--state-dir", filepath.Join(dir, stateName), "--return-aggregate-stream", "--handler", o.handler)
}
