package ready

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"runpodctl-worker/internal/protocol"
)

// stopTime is what a program gets to end by itself when its readiness is lost.
const stopTime = 10 * time.Second

// Guarded is a handler that is ready only behind a gate, and ends when the gate closes.
type Guarded struct {
	Handler
	gate *Gate
	busy atomic.Int64 // jobs that run

	ending sync.Once
	exited chan struct{}
	err    error // final once exited is closed

	watching sync.WaitGroup
	endWatch context.CancelFunc // set by Start
	hurried  context.Context    // ends when a Stop has run out of time
	hurry    context.CancelFunc
}

// Guard puts a handler behind a gate. For each life of the handler's program there is one Guarded.
func Guard(h Handler, gate *Gate) *Guarded {
	g := &Guarded{Handler: h, gate: gate, exited: make(chan struct{}), endWatch: func() {}}
	g.hurried, g.hurry = context.WithCancel(context.Background())
	return g
}

// Start returns when the handler has started and all probes hold.
func (g *Guarded) Start(ctx context.Context) (protocol.Ready, error) {
	ready, err := g.Handler.Start(ctx)
	if err != nil {
		return ready, err
	}
	if err := g.await(ctx); err != nil {
		return protocol.Ready{}, err
	}
	watch, cancel := context.WithCancel(context.Background())
	g.endWatch = cancel
	g.watching.Go(func() { g.watch(watch) })
	return ready, nil
}

// await waits for the gate, as long as the program lives.
func (g *Guarded) await(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var life sync.WaitGroup
	defer life.Wait()
	defer cancel()
	life.Go(func() {
		select {
		case <-g.Handler.Exited():
			cancel()
		case <-ctx.Done():
		}
	})
	err := g.gate.Await(ctx)
	if err != nil && closed(g.Handler.Exited()) {
		return errors.Join(g.Handler.Err(), err)
	}
	return err
}

// watch notes the end of the program, and makes an end of one whose readiness is lost. Whoever waits for the end
// learns of it first: the jobs come back only when the program is gone.
func (g *Guarded) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var gate sync.WaitGroup
	defer gate.Wait()
	defer cancel()
	lost := make(chan error, 1)
	gate.Go(func() { lost <- g.gate.Watch(ctx, func() bool { return g.busy.Load() > 0 }) })
	select {
	case <-g.Handler.Exited():
		g.end(g.Handler.Err())
	case err := <-lost:
		if err == nil {
			return
		}
		g.end(err)
		stop, cancel := context.WithTimeout(g.hurried, stopTime)
		defer cancel()
		if err := g.Handler.Stop(stop); err != nil {
			g.gate.log.Error("The program could not be ended.", "error", err)
		}
	}
}

func (g *Guarded) end(err error) {
	g.ending.Do(func() {
		g.err = err
		close(g.exited)
	})
}

// Handle runs one job. The end of the program is known to all when a job reports it.
func (g *Guarded) Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	g.busy.Add(1)
	defer g.busy.Add(-1)
	out, err := g.Handler.Handle(ctx, job, sink)
	if err != nil && closed(g.Handler.Exited()) {
		g.end(g.Handler.Err())
	}
	if lost, ok := errors.AsType[*LostError](g.Err()); ok && err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", lost, err) // the end of the program is only what came of it
	}
	return out, err
}

// Exited is closed when the program has ended by itself, or its readiness is lost.
func (g *Guarded) Exited() <-chan struct{} { return g.exited }

// Err is a *LostError, or how the program ended.
func (g *Guarded) Err() error {
	if closed(g.exited) {
		return g.err
	}
	return nil
}

// Stop ends the watch and the program.
func (g *Guarded) Stop(ctx context.Context) error {
	g.endWatch()
	defer g.hurry()
	defer context.AfterFunc(ctx, g.hurry)()
	g.watching.Wait()
	return g.Handler.Stop(ctx)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
