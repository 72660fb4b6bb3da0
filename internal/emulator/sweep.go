package emulator

import (
	"context"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// sweepBatch bounds how long one step of a sweep keeps the store from its callers.
const sweepBatch = 1000

// sweep enforces the time limits as of now.
func (ep *endpoint) sweep(ctx context.Context) {
	for {
		due, err := ep.store.Sweep(ctx, sweepBatch)
		if err != nil {
			ep.opts.Log.Error("time limits could not be enforced", "endpoint", ep.id, "error", err)
			return
		}
		for i := range due {
			ep.overdue(&due[i]) //nolint:contextcheck // a webhook outlives the sweep
		}
		if len(due) < sweepBatch {
			break
		}
	}
	since := ep.opts.Now().Add(-ep.opts.WorkerSeen)
	ep.workers.forget(since)
	ep.stops.forget(since)
}

// overdue tells people, and the worker if it may still be at it, of a job whose time was over.
func (ep *endpoint) overdue(d *store.Due) {
	job := &d.Job
	if d.Gone && job.Status.Terminal() {
		return // a result that was kept long enough
	}
	log := ep.opts.Log.With("job", job.ID, "worker", job.Worker)
	switch {
	case d.Gone:
		log.Warn("a job was deleted in state "+string(job.Status)+": its ttl was over", "ttl", job.Policy.TTL)
		ep.stop(job)
	case job.Status == protocol.InQueue:
		log.Warn("a job is delivered again: its worker has neither reported on it nor named it in a ping",
			"lease", ep.opts.Lease, "retries", job.Retries)
	default:
		log.Warn("a job failed: "+job.Error, "executionTimeout", job.Policy.Execution)
		ep.stop(job)
		ep.ended(job)
	}
}
