package worker

import (
	"context"
	"errors"
	"time"

	"runpodctl-worker/internal/protocol"
)

// Heartbeat is the heartbeat alone, for a worker that takes its jobs in another way: it tells the platform which ones
// are held, for as long as ctx lasts.
func Heartbeat(ctx context.Context, cfg Config, platform Platform, held func() []string) {
	New(cfg, nil, platform).heartbeat(ctx, held)
}

// heartbeat tells the platform which jobs this worker holds, for as long as ctx lasts. Nothing that happens to
// a job can hold it up. There is never a second ping in flight; after a slow one the next is due at once.
func (w *Worker) heartbeat(ctx context.Context, held func() []string) {
	ticker := time.NewTicker(w.cfg.PingInterval)
	defer ticker.Stop()
	for {
		thawed := w.clock.thawed()
		err := w.platform.Ping(ctx, held())
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, protocol.ErrNoURL):
			w.log.Info("No heartbeats are sent: the platform gave no URL for them.")
			w.cfg.Observer.pinged(err)
			return
		case err != nil && !closed(thawed):
			w.complain("Failed to send the heartbeat.", err)
		}
		w.cfg.Observer.pinged(err)
		select {
		case <-ticker.C:
		case <-thawed:
		case <-ctx.Done():
			return
		}
	}
}
