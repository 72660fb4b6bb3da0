package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"runpodctl-worker/internal/worker"
)

const (
	unfitPingTime = 2 * time.Second        // what the last word to the platform may take
	unfitStopTime = 500 * time.Millisecond // what the handler's program gets to end by itself
)

// unfit ends a worker that a check found unfit, whatever hangs: the platform is told, the handler's program, which may
// be nil, is ended, both within a bound. Any other error is passed on.
func (h *workerHost) unfit(err error, handler worker.Handler) error {
	found, ok := errors.AsType[*unfitError](err)
	if !ok {
		return err
	}
	var last sync.WaitGroup
	last.Go(func() {
		api := h.client()
		defer api.Close()
		ctx, cancel := context.WithTimeout(context.Background(), unfitPingTime)
		defer cancel()
		_ = api.Unhealthy(ctx, found.check, h.secrets.String(found.reason)) // the exit does not depend on it
	})
	if handler != nil {
		last.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), unfitStopTime)
			defer cancel()
			_ = handler.Stop(ctx) // what survives a KILL cannot be helped
		})
	}
	last.Wait()
	return silent(exitFailed)
}
