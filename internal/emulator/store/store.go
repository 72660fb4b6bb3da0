// Package store keeps the jobs of one endpoint: the queue, the running ones and the results.
//
// Every change of a job is one atomic step of a Store, decided against the state that the job is in at
// that moment, so that of two callers who want to end a job exactly one does. The steps take plain
// values and no callbacks, so that a database can carry them out on its own side.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"runpodctl-worker/internal/protocol"
)

// Errors of a Store, beside protocol.ErrUnknownJob, ErrJobSettled and ErrNotHolder.
var (
	ErrExists    = errors.New("a job with this id exists already")
	ErrNotFailed = errors.New("the job has not failed")
)

// Texts that the platform itself puts into the error of a job.
const (
	ExecutionTimeout = "executionTimeout exceeded"
	Unacknowledged   = "job timed out after %d retries"
	TTLExceeded      = "ttl exceeded"
)

// Job is a snapshot of one job. Its byte slices are shared and must not be written to.
type Job struct {
	ID      string
	Payload json.RawMessage // the object that workers are handed
	Policy  Policy
	Webhook string // who is told of the end; empty: nobody
	Held    bool   // somebody reads it: until Release, its result makes no room for others

	Status  protocol.Status
	Worker  string // who took it last; empty before the first take
	Retries int    // redeliveries after a worker fell silent
	Output  json.RawMessage
	Error   string

	Created time.Time
	Started time.Time // the latest take
	Ended   time.Time
}

// Policy is how long a job may do what. It is fixed when the job is enqueued.
type Policy struct {
	Execution  time.Duration // from the take to the end
	TTL        time.Duration // from submission, or from the latest Requeue; then the job is deleted in any state
	Retention  time.Duration // from the end; then the result is deleted
	MaxRetries int

	// What people disagree about.
	ExecutionTimesOut bool // a job that runs too long is TIMED_OUT, not FAILED
	SilenceTimesOut   bool // so is one whose workers fell silent
	TTLTimesOut       bool // a job that has not ended within its TTL is TIMED_OUT and kept, not deleted
	LateProgress      bool // an update after the end, by the worker that held it, reopens the job
}

// Take asks for jobs.
type Take struct {
	Worker string
	Max    int
	Lease  time.Duration // how long the jobs stay the worker's without a word from it
	Wait   time.Duration // how long to wait for a first job
}

// End is how a job ends.
type End struct {
	Status protocol.Status
	Output json.RawMessage
	Error  string
}

// Until is what a Wait waits for.
type Until int

// A job ends once; a chunk is there until it is drained.
const (
	Ended Until = iota
	EndedOrChunk
)

// Due is a job that Sweep has acted on, as it is now. Gone means that it was deleted.
type Due struct {
	Job  Job
	Gone bool
}

// Counts are the figures of /health.
type Counts struct {
	InQueue, InProgress        int
	Completed, Failed, Retried int            // since the start
	Busy                       map[string]int // running jobs by worker
}

// Store is the queue of one endpoint. It is safe for concurrent use. A job past its TTL or
// retention is unknown at once, whenever the next sweep may delete it.
type Store interface {
	// Enqueue puts a new job at the end of the queue. Of the job only ID, Payload, Policy,
	// Webhook and Held are read.
	Enqueue(ctx context.Context, job Job) (Job, error)
	// Take starts up to t.Max jobs, oldest first, for a worker. It waits for the first of them; when
	// the wait or ctx ends without one, it returns none. A caller that cannot pass jobs on must Untake them.
	Take(ctx context.Context, t Take) ([]Job, error)
	// Untake puts jobs that never reached the worker back to the front of the queue, in their order. Each is as it was before
	// that take: a worker that had it earlier may still deliver its result.
	Untake(ctx context.Context, worker string, ids []string) error
	// Renew extends the leases of a worker's jobs. It returns those of the ids that the worker
	// should no longer work on: deleted, ended, or with another worker.
	Renew(ctx context.Context, worker string, ids []string) (lost []string, err error)

	// Finish ends a job that has not ended. With a worker, only that worker's own job: one it holds,
	// or held last when the job waits again after a silence. The job comes back also with ErrJobSettled.
	Finish(ctx context.Context, id, worker string, end End) (Job, error)
	// Requeue puts a job that FAILED or TIMED_OUT back to the end of the queue, as if new, with its
	// whole TTL ahead, or returns it with ErrNotFailed. Only the time of its submission stays.
	Requeue(ctx context.Context, id string) (Job, error)
	// Progress replaces the output of a worker's running job.
	Progress(ctx context.Context, id, worker string, value json.RawMessage) error
	// AppendChunks adds to the stream of a worker's running job.
	AppendChunks(ctx context.Context, id, worker string, chunks ...json.RawMessage) error
	// DrainChunks takes what the stream has gathered, and the job as of the same moment: chunks
	// of a job that has ended are all there are.
	DrainChunks(ctx context.Context, id string) (Job, []json.RawMessage, error)

	// Get is a job as it is now.
	Get(ctx context.Context, id string) (Job, error)
	// Wait returns the job when what is awaited has come, when the wait is over, or when ctx ends.
	Wait(ctx context.Context, id string, until Until, wait time.Duration) (Job, error)
	// SetTTL makes a job exist for so long from now.
	SetTTL(ctx context.Context, id string, ttl time.Duration) (Job, error)
	// Release says that nobody reads a job any more that was Held.
	Release(ctx context.Context, id string) error
	// Purge deletes the waiting jobs and returns their number.
	Purge(ctx context.Context) (int, error)
	// Counts are the figures as of now.
	Counts(ctx context.Context) (Counts, error)
	// List is up to limit jobs, newest first.
	List(ctx context.Context, limit int) ([]Job, error)

	// Sweep acts on up to limit jobs whose time is over: silent workers, long executions, TTLs
	// and retentions.
	Sweep(ctx context.Context, limit int) ([]Due, error)
	// Close ends every wait.
	Close() error
}
