// Package worker is the loop between the platform and a handler: it takes jobs, runs them, reports on
// them, and stops without losing any.
package worker

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"runpodctl-worker/internal/protocol"
)

// Handler runs jobs. One Handler is one life of the program behind it, from Start to Stop; a worker whose program has
// died goes on with another one.
type Handler interface {
	// Start returns when jobs may come: the program runs and its model is loaded.
	Start(ctx context.Context) (protocol.Ready, error)
	// Handle runs one job. An Outcome with an Error is the handler's own failure; an error means that
	// the handler could not finish: ctx was cancelled, or its program died, and then Exited is closed
	// before. With protocol.ErrNotBegun the program ended before it had the job, which is then for the next one. It may be called
	// concurrently, and returns only when the job no longer runs. The worker drops the Outcome.
	Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error)
	// Limit is how many jobs it can really run at a time, 0 for any number. It may change after a
	// job: what a Python function does is sure only once it was called.
	Limit() int
	// Exited is closed when the program behind the handler has ended by itself; Err then says how.
	Exited() <-chan struct{}
	Err() error
	// Stop ends the program: TERM, time until ctx ends, KILL. It returns when everything is gone.
	Stop(ctx context.Context) error
}

// Scaler is a Handler with a say in the concurrency (Ready.Modifier).
type Scaler interface {
	// Concurrency asks for the wanted number of parallel jobs, given the present one.
	// The error says what was wrong with the answer.
	Concurrency(ctx context.Context, current int) (int, error)
}

// Resizer is a Handler whose Limit changes by itself, not only after a job.
type Resizer interface {
	// Resized delivers a value after each change.
	Resized() <-chan struct{}
}

// Platform is the other side. protocol/client is the real one. Errors are *protocol.StatusError,
// *protocol.DecodeError, protocol.ErrNoURL or transport errors. Every call is made once; bodies and values
// are not changed, and may be sent again.
type Platform interface {
	// Take waits for up to n jobs, as long as the platform holds the call. None is no error. Jobs may come
	// with an error about the rest of the answer.
	Take(ctx context.Context, n int, busy bool) ([]protocol.Job, error)
	Done(ctx context.Context, job string, body protocol.Body, stream bool) error
	Progress(ctx context.Context, job string, value json.RawMessage) error
	Chunk(ctx context.Context, job string, item json.RawMessage) error
	// Stops waits for ids of jobs that the platform wants stopped.
	Stops(ctx context.Context) ([]string, error)
	Ping(ctx context.Context, jobs []string) error
}

// Journal is what a worker remembers beyond the end of its process. What it cannot write it does not keep; no job depends on it.
type Journal interface {
	// Owed are the jobs that a process before this one had results of and no end, the oldest result first, with the
	// bytes of the results. Recall reads one, which its caller drops.
	Owed() iter.Seq2[string, int64]
	Recall(job string) (protocol.Outcome, error)
	// Crashes counts for each job how often it took down what ran it.
	Crashes() map[string]int
	// Suspected tells whether a job was run when a worker died, and has had no end since.
	Suspected(job string) bool

	// A job is run from now on, it has a result, whose bytes are not changed any more, and it is settled: the platform has accepted the
	// result, or wants none. A second result takes the place of the first. A job that is released is not run any more; its result, if it
	// has one, is still owed.
	Taken(job string)
	Result(job string, outcome protocol.Outcome)
	Settled(job string)
	Released(job string)
	// Crashed notes that a job that had the program to itself took it down.
	Crashed(job string)
}

// Offloader is a place for outputs that are too large for the platform.
type Offloader interface {
	// Offload stores the output of a job, and returns the small one that tells clients where it is. It has a patience of its
	// own with a place that fails. After the end of a process it may be called again for what it has stored already.
	Offload(ctx context.Context, job string, output io.ReaderAt, size int64) (json.RawMessage, error)
}

// Renewer is a Platform with connections that may have died while the worker was frozen.
type Renewer interface {
	// Renew closes the connections that are idle. cut closes those that are in use now, if they still are.
	Renew() (cut func())
}
