package gateway

import (
	"context"
	"encoding/json"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// refusedResult fails a job whose result makes no sense: its SDK does not post another one.
const refusedResult = "the program's result was refused, as the platform would refuse it: a result is a JSON object with " +
	`"output", or with an "error" that is text, of at most 64 MiB; NaN and Infinity are not JSON`

// Done implements server.Backend.
func (g *Gateway) Done(ctx context.Context, _, id string, d server.Done) error {
	defer g.begin(ctx)()
	j := g.find(id)
	if j == nil {
		return protocol.ErrUnknownJob
	}
	j.reports.Lock() // after the items that came before
	defer j.reports.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.jobs[id] != j:
		return protocol.ErrJobSettled
	case j.lost:
		g.giveUp(j, j.stopped)
	default:
		g.refreshed = g.refreshed || d.StopPod
		g.finish(j, protocol.Outcome{Output: d.Output, Error: d.Error, Refresh: d.StopPod, Stream: d.Stream}, nil)
	}
	return nil
}

// refused fails the job of a result that server.Server did not accept.
func (g *Gateway) refused(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.jobs[id]; j != nil && j.taken {
		g.finish(j, protocol.Outcome{Error: refusedResult}, nil)
	}
}

// Progress implements server.Backend. The official SDK posts it without any order, so that it comes after the end is
// normal, and no error.
func (g *Gateway) Progress(ctx context.Context, _, id string, value json.RawMessage) error {
	defer g.begin(ctx)()
	j := g.find(id)
	if j == nil || value == nil {
		return nil
	}
	j.reports.Lock()
	defer j.reports.Unlock()
	if !j.over {
		j.sink.Progress(value)
	}
	return nil
}

// Chunk implements server.Backend. It is answered when the worker has taken the item, which holds up the program as the
// platform would.
func (g *Gateway) Chunk(ctx context.Context, _, id string, item json.RawMessage) error {
	defer g.begin(ctx)()
	j := g.find(id)
	if j == nil {
		return protocol.ErrUnknownJob
	}
	j.reports.Lock()
	defer j.reports.Unlock()
	if j.over {
		return protocol.ErrJobSettled
	}
	if err := j.sink.Chunk(item); err != nil {
		g.lose(j, err)
		return protocol.ErrJobSettled
	}
	return nil
}

// lose notes that an item was not handed on: the stream is not whole, so the program need not go on with it.
func (g *Gateway) lose(j *job, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	j.lost = true
	if g.jobs[j.ID] == j && j.stopped == nil {
		j.stopped = why
		g.stops.post(j)
	}
}

// Ping implements server.Backend. Which jobs run the worker knows, and says so itself; that the program is unhealthy only
// the program can know.
func (g *Gateway) Ping(_ context.Context, _ string, p server.Ping) error {
	if p.Unhealthy && g.opts.Fault != nil {
		g.opts.Fault(&UnhealthyError{Check: p.Check, Reason: p.Reason})
	}
	return nil
}
