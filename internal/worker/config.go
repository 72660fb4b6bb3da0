package worker

import (
	"context"
	"log/slog"
	"time"

	"runpodctl-worker/internal/protocol"
)

// Bounds of what a configuration, or a handler's concurrency function, can ask for.
const (
	MaxConcurrency  = 1024
	MinPingInterval = 100 * time.Millisecond
)

const (
	defaultPingInterval = 10 * time.Second
	defaultStopLinger   = 500 * time.Millisecond
	defaultMaxCrashes   = 1
	defaultMaxRestarts  = 3
)

// Config is what a worker is told. The zero value works.
type Config struct {
	Concurrency  int           // jobs at a time (1); a Scaler may change it while the worker runs
	PingInterval time.Duration // between two heartbeats (10 s, at least MinPingInterval)
	PingEarly    bool          // heartbeats start before the handler does, not when it is ready
	StopLinger   time.Duration // how long a draining worker keeps its open take (500 ms, negative for not at all)
	GracePeriod  time.Duration // how long a drain may last (0: without limit)
	FailOnKill   bool          // jobs that are left when a drain may last no longer are FAILED, not released
	ReadyTimeout time.Duration // how long the handler may take to start (0: without limit)
	JobTimeout   time.Duration // how long a handler may work on one job (0: without limit)
	MaxCrashes   int           // a job that took the program down this often is not run again (1, negative for no limit)
	MaxRestarts  int           // so many ends of the program in a row, with no job done in between, end the worker (3)
	MaxResult    int           // bytes of the largest result that is sent (protocol.MaxResult)
	Offload      Offloader     // nil: a larger result fails its job
	MaxChunk     int           // bytes of the largest post of a stream (protocol.MaxChunk)
	StreamBatch  bool          // items of a stream that are text and come at about the same time go out as one
	Refresh      bool          // every job asks for a fresh worker
	Log          *slog.Logger  // nil: silent
	Journal      Journal       // nil: nothing outlives this process
	Observer     Observer      // is told what happens

	// Prepare is called once, before the first handler starts, and returns soon after ctx has ended. Its time counts as nobody's.
	Prepare func(ctx context.Context)
	// OnReady is called after each start of a handler, before it gets a job; its error ends the worker.
	OnReady func(ctx context.Context, h Handler, ready protocol.Ready, first bool) error
}

func (c Config) withDefaults() Config {
	c.Concurrency = min(max(c.Concurrency, 1), MaxConcurrency)
	if c.PingInterval <= 0 {
		c.PingInterval = defaultPingInterval
	}
	c.PingInterval = max(c.PingInterval, MinPingInterval)
	if c.StopLinger == 0 {
		c.StopLinger = defaultStopLinger
	}
	if c.MaxCrashes == 0 {
		c.MaxCrashes = defaultMaxCrashes
	}
	if c.MaxRestarts <= 0 {
		c.MaxRestarts = defaultMaxRestarts
	}
	if c.MaxResult <= 0 {
		c.MaxResult = protocol.MaxResult
	}
	if c.MaxChunk <= 0 {
		c.MaxChunk = protocol.MaxChunk
	}
	if c.Journal == nil {
		c.Journal = noJournal{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
