// Package server answers the worker-facing half of the platform's API over a small Backend:
// job-take, job-take-batch, job-done, job-stream, job-stop and ping. The emulator serves it over its
// queue, the gateway over the jobs of one worker.
package server

import (
	"context"
	"encoding/json"
)

// Backend is what stands behind the routes. Its errors are those of package protocol
// (ErrUnknownJob, ErrJobSettled, ErrNotHolder, BadRequestError); any other is answered 500.
// worker is the path segment as sent, which may be the literal "$RUNPOD_POD_ID".
type Backend interface {
	// Take waits until there is a job, ctx ends or the backend's hold time is over, and returns at most
	// n jobs as the objects to hand out. None is no error.
	Take(ctx context.Context, worker string, n int) ([]json.RawMessage, error)
	// Untake gives back jobs whose taker had gone when the answer was written.
	Untake(worker string, jobs []json.RawMessage)
	// Done is a terminal report, Progress an interim one, Chunk one item of a stream.
	Done(ctx context.Context, worker, job string, d Done) error
	Progress(ctx context.Context, worker, job string, value json.RawMessage) error
	Chunk(ctx context.Context, worker, job string, item json.RawMessage) error
	// Stops waits, like Take, for ids of jobs that the worker should stop.
	Stops(ctx context.Context, worker string) ([]string, error)
	// Ping is a heartbeat, or the last word of an unhealthy worker.
	Ping(ctx context.Context, worker string, p Ping) error
}

// Done is the body of a job-done call.
type Done struct {
	Output  json.RawMessage // nil when absent
	Error   string
	StopPod bool
	Stream  bool // isStream
}

// Ping is one heartbeat.
type Ping struct {
	Jobs      []string
	Version   string
	Unhealthy bool
	Check     string // with Unhealthy: which check failed, and why
	Reason    string
}
