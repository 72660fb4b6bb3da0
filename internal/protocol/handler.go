package protocol

import "encoding/json"

// Ready is what a handler says of itself once jobs may come.
type Ready struct {
	Name      string   // for people: "handler.py (python 3.11, async)"
	Modifier  bool     // it has a concurrency_modifier, so ask its Concurrency
	Aggregate bool     // return_aggregate_stream: the result of a stream carries all its chunks
	Checks    []string // fitness checks that it registered, in order

	// Environ holds the variables of the fitness checks that are set when it is ready, which may differ from those that
	// it was started with. Only the shim tells; nil from other handlers.
	Environ map[string]string
}

// Sink takes what a handler reports while it works on a job.
type Sink interface {
	// Chunk hands on one item of a stream, in order. It blocks while too many items wait to be
	// posted, so that a generator cannot run ahead of the network. An error means that the
	// job is over and the handler should stop.
	Chunk(item json.RawMessage) error
	// Progress replaces what clients see as the output of the running job. It never blocks.
	Progress(value json.RawMessage)
}
