package cli

import (
	"context"
	"errors"
	"sync"
	"time"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/worker"
)

const (
	unfitPingTime = 2 * time.Second        // what the last word to the platform may take
	unfitStopTime = 500 * time.Millisecond // what the handler's program gets to end by itself
	downCheck     = "handler_program"      // what has failed where it was no check
)

// unfit ends a worker that a check found unfit, whatever hangs: the platform is told, the handler's program, which may
// be nil, is ended, both within a bound. Any other error is passed on.
func (h *workerHost) unfit(err error, handler worker.Handler) error {
	found, ok := errors.AsType[*unfitError](err)
	if !ok {
		return err
	}
	var last sync.WaitGroup
	last.Go(func() { h.tellUnfit(found.check, found.reason) })
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

// tellUnfit is the last word to the platform, which the exit does not depend on.
func (h *workerHost) tellUnfit(check, reason string) {
	api := h.client()
	defer api.Close()
	ctx, cancel := context.WithTimeout(context.Background(), unfitPingTime)
	defer cancel()
	_ = api.Unhealthy(ctx, check, h.secrets.String(reason))
}

// tellDown tells the platform that the handler's program does not stay up, unless it knows a better reason already.
func (h *workerHost) tellDown(err error) {
	_, told := errors.AsType[*exitError](err)
	_, unhealthy := errors.AsType[*program.UnhealthyError](err)
	if !told && !unhealthy {
		h.tellUnfit(downCheck, err.Error())
	}
}
