package worker

import (
	"context"
	"errors"
	"time"

	"runpodctl-worker/internal/protocol"
)

// heartbeat tells the platform which jobs this worker holds, for as long as ctx lasts. Nothing that happens to
// a job can hold it up. There is never a second ping in flight; after a slow one the next is due at once.
func (w *Worker) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(w.cfg.PingInterval)
	defer ticker.Stop()
	for {
		thawed := w.clock.thawed()
		err := w.platform.Ping(ctx, w.ledger.ids())
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, protocol.ErrNoURL):
			w.log.Info("No heartbeats are sent: the platform gave no URL for them.")
			return
		case err != nil && !closed(thawed):
			w.complain("Failed to send the heartbeat.", err)
		}
		select {
		case <-ticker.C:
		case <-thawed:
		case <-ctx.Done():
			return
		}
	}
}
