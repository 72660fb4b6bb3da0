package emulator

import (
	"context"
	"encoding/json"
	"errors"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

var _ server.Backend = (*endpoint)(nil)

// Take implements server.Backend.
func (ep *endpoint) Take(ctx context.Context, worker string, n int) ([]json.RawMessage, error) {
	ep.workers.saw(worker, ep.opts.Now(), asking)
	jobs, err := ep.store.Take(ctx, store.Take{
		Worker: worker, Max: n, Lease: ep.opts.Lease, Wait: ep.opts.TakeHold,
	})
	if err != nil {
		return nil, err
	}
	objects := make([]json.RawMessage, len(jobs))
	for i := range jobs {
		objects[i] = jobs[i].Payload
		// A stop that is still waiting was meant for an earlier attempt at the job.
		ep.stops.retract(worker, jobs[i].ID)
	}
	return objects, nil
}

// Untake implements server.Backend. The caller's context has ended, but the jobs must go back.
func (ep *endpoint) Untake(worker string, objects []json.RawMessage) {
	ids := make([]string, 0, len(objects))
	for _, object := range objects {
		job, err := protocol.ParseJob(object)
		if err != nil { // we built it
			continue
		}
		ids = append(ids, job.ID)
	}
	if err := ep.store.Untake(context.Background(), worker, ids); err != nil {
		ep.opts.Log.Error("jobs could not go back to the queue; their lease will end", "jobs", ids, "error", err)
	}
}

// Done implements server.Backend.
func (ep *endpoint) Done(ctx context.Context, worker, job string, d server.Done) error {
	end := store.End{Status: protocol.Completed, Output: d.Output, Error: d.Error}
	if d.Error != "" {
		end.Status = protocol.Failed
	}
	_, err := ep.finish(ctx, job, worker, end)
	return err
}

// refused is told of a result that was answered 400. The platform is said to leave such a job alone until
// its lease ends, and also to take it for done.
func (ep *endpoint) refused(ctx context.Context, worker, job string) {
	if !ep.opts.Disputed.RefusedCompletes {
		return
	}
	if _, err := ep.finish(ctx, job, worker, store.End{Status: protocol.Completed}); err != nil {
		ep.opts.Log.Warn("a refused result could not end its job", "job", job, "worker", worker, "error", err)
	}
}

// Progress implements server.Backend. The official worker posts progress without any order, so an
// update after the end is normal, and is ignored.
func (ep *endpoint) Progress(ctx context.Context, worker, job string, value json.RawMessage) error {
	err := ep.store.Progress(ctx, job, worker, value)
	if errors.Is(err, protocol.ErrJobSettled) {
		return nil
	}
	return err
}

// Chunk implements server.Backend.
func (ep *endpoint) Chunk(ctx context.Context, worker, job string, item json.RawMessage) error {
	return ep.store.AppendChunks(ctx, job, worker, item)
}

// Stops implements server.Backend.
func (ep *endpoint) Stops(ctx context.Context, worker string) ([]string, error) {
	ep.workers.saw(worker, ep.opts.Now(), alive)
	return ep.stops.wait(ctx, worker, ep.opts.StopHold), nil
}

// Ping implements server.Backend. A job that the worker names, but should no longer work on, is
// one whose stop got lost on the way: it is sent again.
func (ep *endpoint) Ping(ctx context.Context, worker string, p server.Ping) error {
	if p.Unhealthy {
		ep.workers.saw(worker, ep.opts.Now(), unhealthy)
		ep.opts.Log.Warn("a worker is unhealthy", "worker", worker, "check", p.Check, "reason", p.Reason)
		return nil
	}
	ep.workers.saw(worker, ep.opts.Now(), alive)
	lost, err := ep.store.Renew(ctx, worker, p.Jobs)
	for _, id := range lost {
		ep.stops.post(worker, id)
	}
	return err
}

// stop tells the worker of a job, if it ever had one, to leave it.
func (ep *endpoint) stop(job *store.Job) {
	if job.Worker != "" {
		ep.stops.post(job.Worker, job.ID)
	}
}
