package emulator

import (
	"context"
	"errors"
	"fmt"

	"runpodctl-worker/internal/protocol"
)

// addRequests adds to a draft; nothing of a list that has a mistake in it.
func (ep *endpoint) addRequests(b *batch, submissions []*submission) error {
	requests := make([]*batchRequest, len(submissions))
	for i, s := range submissions {
		if s == nil {
			s = &submission{}
		}
		if _, err := ep.policy(s, ep.opts.TTL); err != nil {
			var bad protocol.BadRequestError
			errors.As(err, &bad)
			return protocol.BadRequestError(fmt.Sprintf("requests[%d].%s", i, string(bad)))
		}
		s.batch = b.id
		requests[i] = &batchRequest{id: runID(), submission: s, status: protocol.InQueue}
	}
	return ep.batches.draft(b, func() error {
		if len(b.requests)+len(requests) > maxBatchRequests {
			return protocol.BadRequestError(fmt.Sprintf("requests: a batch has at most %d", maxBatchRequests))
		}
		b.requests = append(b.requests, requests...)
		return nil
	})
}

// startBatch makes jobs of the requests of a draft. Their results are kept as long as any job may exist:
// hosted, nothing else is known.
func (ep *endpoint) startBatch(ctx context.Context, b *batch) error {
	b.step.Lock()
	defer b.step.Unlock()
	err := ep.batches.draft(b, func() error {
		b.status = batchFinalized
		for _, r := range b.requests {
			ep.batches.jobs[r.id] = r
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range b.requests { // fixed by now
		if _, err := ep.enqueue(context.WithoutCancel(ctx), r.id, r.submission, ep.opts.TTL); err != nil {
			ep.batches.fail(b)
			return err
		}
		r.submission = nil
	}
	return nil
}

// dropBatch drops what waits; what runs is finished. A request that is taken at the very moment may
// be stopped.
func (ep *endpoint) dropBatch(ctx context.Context, b *batch) error {
	b.step.Lock()
	defer b.step.Unlock()
	if ep.batches.cancel(b, ep.opts.Now()) {
		return nil
	}
	for _, id := range ep.batches.openOf(b) {
		job, err := ep.store.Get(ctx, id)
		if err == nil && job.Status == protocol.InQueue {
			_, err = ep.cancelJob(ctx, id)
		}
		if err != nil && !errors.Is(err, protocol.ErrUnknownJob) && !errors.Is(err, protocol.ErrJobSettled) {
			return err
		}
	}
	return nil
}

// running counts the requests that run. Those whose job has been deleted are over from now on.
func (ep *endpoint) running(ctx context.Context, b *batch) (int, error) {
	b.step.Lock() // while it is being finalized, some of its jobs do not exist yet
	defer b.step.Unlock()
	if ep.batches.statusOf(b) == batchDraft {
		return 0, nil
	}
	n := 0
	for _, id := range ep.batches.openOf(b) {
		job, err := ep.store.Get(ctx, id)
		switch {
		case errors.Is(err, protocol.ErrUnknownJob):
			ep.batches.lost(id)
		case err != nil:
			return 0, err
		case job.Status == protocol.InProgress:
			n++
		}
	}
	return n, nil
}
