package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"runpodctl-worker/internal/protocol"
)

const (
	stopInterval     = time.Second // at least, from one call to the next
	longestStopDelay = 30 * time.Second
)

// watchStops cancels the jobs that the platform wants stopped, for as long as ctx lasts.
func (w *Worker) watchStops(ctx context.Context) {
	pace := delays(stopInterval, longestStopDelay, 2)
	for {
		began, thawed := time.Now(), w.clock.thawed()
		ids, err := w.platform.Stops(ctx)
		if errors.Is(err, protocol.ErrNoURL) {
			w.log.Info("Single jobs cannot be stopped: the URL of the stop channel does not follow from that of the takes.")
			return
		}
		for _, id := range ids {
			if t := w.ledger.find(id); t != nil { // any other is a job that has ended, or never was here
				t.log(slog.LevelInfo, "The platform stops the job.")
				w.loop(t.stop)
			}
		}
		if ctx.Err() != nil {
			return
		}
		rest := stopInterval - time.Since(began)
		if err == nil {
			pace.Reset()
			if !sleep(ctx, rest) {
				return
			}
			continue
		}
		if !closed(thawed) {
			w.complain("Failed to ask for jobs to stop.", err)
		}
		if !pause(ctx, thawed, pace, max(pace.NextBackOff(), rest, asked(err))) {
			return
		}
	}
}
