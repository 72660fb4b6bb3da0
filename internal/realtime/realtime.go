// Package realtime is the worker that takes jobs from requests to its own port, and answers them with the results.
package realtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/internal/mistake"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

const (
	headerTime = 10 * time.Second // for the head of a request
	idleTime   = 2 * time.Minute  // for a connection without one
	// handlerStopTime is what the handler's program gets to end by itself once every job has its answer.
	handlerStopTime = 10 * time.Second
	// answerTime is what answers that are ready get to be sent when the server closes.
	answerTime = 2 * time.Second
)

// Handler runs jobs. One Handler serves one Serve from Start to Stop.
type Handler interface {
	// Start returns when jobs may come.
	Start(ctx context.Context) (protocol.Ready, error)
	// Handle runs one job. An error means that the handler could not finish it.
	Handle(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error)
	// Limit is how many jobs it can run at a time, 0 for any number. It may change after a job.
	Limit() int
	// Exited is closed when the program behind the handler has ended by itself; Err then says how.
	Exited() <-chan struct{}
	Err() error
	// Stop ends the program, by force when ctx ends.
	Stop(ctx context.Context) error
}

// Resizer is a Handler whose Limit changes at other times too.
type Resizer interface {
	Resized() <-chan struct{}
}

// Config is what the worker is told.
type Config struct {
	Endpoint     string                                          // the id in the route
	Listen       func(ctx context.Context) (net.Listener, error) // called when the handler is ready
	ReadyTimeout time.Duration                                   // how long the handler may take to start (0: without limit)
	GracePeriod  time.Duration                                   // how long a drain may last (0: without limit)
	Log          *slog.Logger

	// Heartbeat tells the platform which jobs are held, from when the handler is ready until ctx ends. It may be nil.
	Heartbeat func(ctx context.Context, held func() []string)
	// OnReady is called between the handler's start and the first request; its error ends the worker. It may be nil.
	OnReady func(context.Context, protocol.Ready) error
}

// UnfinishedError names the jobs that were running when the worker had to end.
type UnfinishedError struct{ Jobs []string }

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("%d job(s) left unfinished: %s", len(e.Jobs), strings.Join(e.Jobs, ", "))
}

// Serve starts the handler, answers requests, and stops the handler. When fetch ends, no further job is taken, and
// Serve returns when those that run have their answers. When work ends, it returns at once, with an *UnfinishedError
// if jobs were running. It returns too when the handler's program has ended by itself.
func Serve(fetch, work context.Context, cfg Config, h Handler) error {
	fetch, end := context.WithCancel(fetch)
	defer end()
	defer context.AfterFunc(work, end)()
	err := serve(fetch, work, cfg, h)
	stop, cancel := context.WithTimeout(work, handlerStopTime)
	defer cancel()
	if stopErr := h.Stop(stop); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("the handler did not stop: %w", stopErr))
	}
	return err
}

func serve(fetch, work context.Context, cfg Config, h Handler) error {
	if cfg.Endpoint == "" {
		return errors.New("a realtime worker needs the id of its endpoint for its route; set RUNPOD_ENDPOINT_ID")
	}
	ready, err := start(fetch, cfg, h)
	if err != nil {
		if fetch.Err() != nil {
			return nil // it was told to stop
		}
		return err
	}
	listener, err := cfg.Listen(fetch)
	if err != nil {
		return fmt.Errorf("listen for realtime requests: %w", err)
	}
	jobs, abandon := context.WithCancelCause(work)
	defer abandon(nil)
	w := &worker{cfg: cfg, handler: h, jobs: jobs, slots: newSlots(h.Limit), held: map[string]int{}}
	cfg.Log.Info("Ready for requests.", slog.String("handler", ready.Name),
		slog.String("address", listener.Addr().String()), slog.String("route", "POST /"+cfg.Endpoint+"/realtime"))
	return w.run(fetch, abandon, listener)
}

func start(ctx context.Context, cfg Config, h Handler) (protocol.Ready, error) {
	limited := ctx
	if limit := cfg.ReadyTimeout; limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not ready after %s", limit))
		defer cancel()
	}
	ready, err := h.Start(limited)
	if err != nil {
		return ready, fmt.Errorf("the handler did not start: %w", err)
	}
	if cfg.OnReady != nil {
		return ready, cfg.OnReady(ctx, ready)
	}
	return ready, nil
}

// run answers requests until fetch ends or the handler's program does, then sees the jobs through that run.
func (w *worker) run(fetch context.Context, abandon context.CancelCauseFunc, listener net.Listener) error {
	background, endBackground := context.WithCancel(context.WithoutCancel(fetch))
	var loops sync.WaitGroup
	defer loops.Wait()
	defer endBackground()
	broken := make(chan error, 2)
	if w.cfg.Heartbeat != nil {
		loops.Go(func() {
			if err := mistake.Catch(func() { w.cfg.Heartbeat(background, w.ids) }); err != nil {
				w.cfg.Log.Error("The worker ends.", slog.Any("error", err))
				broken <- err
			}
		})
	}
	if r, ok := w.handler.(Resizer); ok {
		loops.Go(func() { w.slots.follow(background, r.Resized()) })
	}

	srv := &http.Server{
		Handler: server.Guard(w.routes(), w.cfg.Log), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime,
		ErrorLog: slog.NewLogLogger(w.cfg.Log.Handler(), slog.LevelWarn),
	}
	loops.Go(func() { broken <- fmt.Errorf("serve realtime requests: %w", srv.Serve(listener)) })
	var err error
	select {
	case <-fetch.Done():
	case <-w.handler.Exited():
		err = exitError(w.handler.Err())
	case err = <-broken:
	}
	if left := w.drain(); len(left) > 0 {
		abandon(errAbandoned)
		_ = srv.Close() // the listener and connections that nobody will answer on
		return errors.Join(err, &UnfinishedError{Jobs: left})
	}
	closing, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if srv.Shutdown(closing) != nil {
		_ = srv.Close() // of connections whose other side does not read
	}
	return err
}

var errExited = errors.New("the handler's program ended")

func exitError(err error) error {
	if err == nil {
		return errExited
	}
	return fmt.Errorf("%w: %w", errExited, err)
}

// drain turns new requests away and waits for the jobs that run. It returns those that were not finished.
func (w *worker) drain() (left []string) {
	w.slots.close()
	ctx := w.jobs
	if w.cfg.GracePeriod > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.cfg.GracePeriod)
		defer cancel()
	}
	w.slots.awaitEmpty(ctx)
	return w.ids()
}
