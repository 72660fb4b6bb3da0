package emulator

import (
	"context"

	"runpodctl-worker/internal/emulator/store"
)

// finish ends a job and lets all know who count on it.
func (ep *endpoint) finish(ctx context.Context, id, worker string, end store.End) (store.Job, error) {
	job, err := ep.store.Finish(ctx, id, worker, end)
	if err == nil {
		ep.ended(&job) //nolint:contextcheck // a webhook outlives the call that ends its job
	}
	return job, err
}

// ended is called with each job that has just ended, in whatever state.
func (ep *endpoint) ended(job *store.Job) {
	ep.batches.ended(job)
	ep.sendWebhook(job)
}
