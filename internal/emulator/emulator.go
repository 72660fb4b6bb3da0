// Package emulator is a local Runpod: the API of an endpoint for its clients, the API of the platform for
// its workers, and the queue between them with the hosted rules.
package emulator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"runpodctl-worker/internal/emulator/fault"
	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/emulator/webhook"
	"runpodctl-worker/internal/lazy"
	"runpodctl-worker/internal/protocol/server"
)

// Emulator serves one or more endpoints. Make one with New, serve its Handler, and keep Run going
// meanwhile: without it no time limit is enforced.
type Emulator struct {
	opts      Options
	endpoints map[string]*endpoint
	standard  *endpoint // answers where a path names none
	handler   http.Handler
	webhooks  *webhook.Sender
	faults    *fault.Injector
	done      chan struct{}
	close     sync.Once
}

// endpoint is one queue with all that belongs to it.
type endpoint struct {
	id      string
	opts    *Options
	store   store.Store
	workers *workers
	stops   *stops
	limits  *limiter // nil: none
	webhook *webhook.Sender
	batches *batches
	server  *server.Server  // the workers' side
	done    <-chan struct{} // the Emulator's
}

// closing tells whether a wait may have ended before its time.
func (ep *endpoint) closing() bool {
	select {
	case <-ep.done:
		return true
	default:
		return false
	}
}

// The ids that the official clients accept.
var validID = lazy.Regexp(`^[a-zA-Z0-9_-]+$`)

// New makes an Emulator; it starts nothing.
func New(o Options) (*Emulator, error) {
	e := &Emulator{opts: o.withDefaults(), endpoints: map[string]*endpoint{}, done: make(chan struct{})}
	e.webhooks, e.faults = webhook.New(e.opts.Webhooks), fault.New(e.done)
	if len(e.opts.Faults.Rules) > 0 {
		e.faults.Add(e.opts.Faults)
	}
	for _, id := range e.opts.Endpoints {
		if !validID().MatchString(id) {
			return nil, fmt.Errorf("endpoint id %q: only letters, digits, - and _ can be part of it", id)
		}
		if e.endpoints[id] != nil {
			return nil, fmt.Errorf("endpoint id %q is there twice", id)
		}
		st, err := e.opts.OpenStore(id)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening the store of endpoint %q: %w", id, err), e.Close())
		}
		ep := &endpoint{
			id: id, opts: &e.opts, store: st, workers: newWorkers(), stops: newStops(e.opts.Now),
			webhook: e.webhooks, batches: newBatches(), done: e.done,
		}
		if e.opts.RateLimits {
			ep.limits = newLimiter(e.opts.Now)
		}
		ep.server = server.New(e.faults.Backend(id, ep), server.Options{
			Key: e.opts.WorkerKey, Log: e.opts.Log,
			MaxResult: e.opts.MaxResult, MaxChunk: e.opts.MaxChunk, Refused: ep.refused,
		})
		e.endpoints[id] = ep
	}
	e.standard = e.endpoints[e.opts.Endpoints[0]]
	e.handler = newGuard(&e.opts, tidy(e.faults.Wrap(e.routes())))
	return e, nil
}

// Handler serves both APIs, under /v2/{endpoint} and, for the first endpoint, at the root.
func (e *Emulator) Handler() http.Handler { return e.handler }

// Run enforces the time limits until ctx ends or the Emulator is closed.
func (e *Emulator) Run(ctx context.Context) {
	tick := time.NewTicker(e.opts.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.done:
			return
		case <-tick.C:
			for _, ep := range e.endpoints {
				ep.sweep(ctx)
			}
		}
	}
}

// Close ends Run and all held calls: each is answered with what there is. Webhooks that are on their way have a
// moment left. Call it before shutting down the HTTP server, which would otherwise wait for them.
func (e *Emulator) Close() error {
	var err error
	e.close.Do(func() {
		close(e.done)
		for _, ep := range e.endpoints {
			ep.stops.close()
			err = errors.Join(err, ep.store.Close())
		}
		e.webhooks.Close()
	})
	return err
}
