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
)

// Config is what a worker is told. The zero value works.
type Config struct {
	Concurrency  int           // jobs at a time (1); a Scaler may change it while the worker runs
	PingInterval time.Duration // between two heartbeats (10 s, at least MinPingInterval)
	PingEarly    bool          // heartbeats start before the handler does, not when it is ready
	StopLinger   time.Duration // how long a draining worker keeps its open take (500 ms, negative for not at all)
	GracePeriod  time.Duration // how long a drain may last (0: without limit)
	ReadyTimeout time.Duration // how long the handler may take to start (0: without limit)
	MaxResult    int           // bytes of the largest result that is sent (protocol.MaxResult)
	Refresh      bool          // every job asks for a fresh worker
	Log          *slog.Logger  // nil: silent

	// OnReady is called between the handler's start and the first take; its error ends the worker.
	OnReady func(context.Context, protocol.Ready) error
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
	if c.MaxResult <= 0 {
		c.MaxResult = protocol.MaxResult
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
