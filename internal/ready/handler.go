package ready

import (
	"context"
	"errors"

	"runpodctl-worker/internal/protocol"
)

// Handler is what a worker uses to run jobs.
type Handler interface {
	Start(ctx context.Context) (protocol.Ready, error)
	Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error)
	Limit() int
	Exited() <-chan struct{}
	Err() error
	Stop(ctx context.Context) error
}

// What only some handlers can do has to pass through a Guarded as well. It does no harm to one that cannot: what a
// handler says of itself when it is ready decides whether it is asked.

// Concurrency asks a handler with a Ready.Modifier.
func (g *Guarded) Concurrency(ctx context.Context, current int) (int, error) {
	if h, ok := g.Handler.(interface {
		Concurrency(ctx context.Context, current int) (int, error)
	}); ok {
		return h.Concurrency(ctx, current)
	}
	return 0, errors.New("the handler has no say in its concurrency")
}

// Check runs one of Ready.Checks.
func (g *Guarded) Check(ctx context.Context, index int) error {
	if h, ok := g.Handler.(interface {
		Check(ctx context.Context, index int) error
	}); ok {
		return h.Check(ctx, index)
	}
	return errors.New("the handler has no fitness checks")
}

// Resized tells that Limit may have changed, which it never does where the handler has no such channel.
func (g *Guarded) Resized() <-chan struct{} {
	if h, ok := g.Handler.(interface{ Resized() <-chan struct{} }); ok {
		return h.Resized()
	}
	return nil
}
