package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"runpodctl-worker/internal/protocol"
)

const (
	// handlerStopTime is what the handler's program gets to end by itself once every job is settled.
	handlerStopTime = 10 * time.Second
	// stillLoading is the time between two lines that say what a start waits for.
	stillLoading = 30 * time.Second
	// abandonAfter bounds the wait for handlers that do not come back although their program is gone.
	abandonAfter = 500 * time.Millisecond
)

// Worker runs the jobs of a platform with a handler. It is used for one Run.
type Worker struct {
	cfg      Config
	handler  Handler
	scaler   Scaler // nil unless the handler has a say in the concurrency
	platform Platform
	log      *slog.Logger

	ready       protocol.Ready // set before the first task
	concurrency atomic.Int64   // the last good value
	ledger      *ledger
	limit       limiter
	noStream    sync.Once

	fetching context.Context // no job is taken after its end
	endFetch context.CancelCauseFunc
	work     context.Context // jobs run and results are posted until its end
	endWork  context.CancelCauseFunc
	tasks    sync.WaitGroup
}

// New returns a Worker. Nothing happens before Run.
func New(cfg Config, handler Handler, platform Platform) *Worker {
	cfg = cfg.withDefaults()
	w := &Worker{
		cfg:      cfg,
		handler:  handler,
		platform: platform,
		log:      cfg.Log,
		ledger:   newLedger(cfg.Concurrency),
	}
	w.concurrency.Store(int64(cfg.Concurrency))
	return w
}

// Run starts the handler, works, and stops the handler. To stop fetching is not to stop working: when fetch
// ends, no further job is taken, and Run returns when those that are held are settled. When work ends, it
// returns at once. The error is an *UnsettledError if jobs are left, and says why where the
// Reason is not the caller's own wish.
func (w *Worker) Run(fetch, work context.Context) (Reason, error) {
	w.fetching, w.endFetch = context.WithCancelCause(fetch)
	defer w.endFetch(nil)
	w.work, w.endWork = context.WithCancelCause(work)
	defer w.endWork(nil)
	defer context.AfterFunc(w.work, func() { w.endFetch(nil) })()

	background, endBackground := context.WithCancel(context.WithoutCancel(work))
	var loops sync.WaitGroup
	defer loops.Wait()
	defer endBackground()

	if w.cfg.PingEarly {
		loops.Go(func() { w.heartbeat(background) })
	}
	if err := w.startHandler(); err != nil {
		reason := NotStarted
		if fetch.Err() != nil || work.Err() != nil {
			reason, err = Drained, nil
		}
		return reason, errors.Join(err, w.stopHandler(w.work))
	}
	if !w.cfg.PingEarly {
		loops.Go(func() { w.heartbeat(background) })
	}
	loops.Go(func() { w.watchStops(background) })
	loops.Go(func() { w.watchHandler(background) })

	w.fetchAll()
	unsettled := w.drain()
	endBackground()
	return w.end(unsettled)
}

func (w *Worker) startHandler() error {
	ready, err := w.awaitReady()
	if err != nil {
		return fmt.Errorf("the handler did not start: %w", err)
	}
	if w.cfg.OnReady != nil {
		if err := w.cfg.OnReady(w.fetching, ready); err != nil {
			return err
		}
	}
	w.ready = ready
	if scaler, ok := w.handler.(Scaler); ok && ready.Modifier {
		w.scaler = scaler
	}
	w.resize()
	w.log.Info("Ready for jobs.", slog.String("handler", ready.Name))
	return nil
}

// awaitReady starts the handler and says now and then that it is still being waited for.
func (w *Worker) awaitReady() (protocol.Ready, error) {
	ctx, cancel := context.WithCancel(w.fetching)
	defer cancel()
	if limit := w.cfg.ReadyTimeout; limit > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not ready after %s", limit))
		defer cancel()
	}
	begin := time.Now()
	remind := time.NewTicker(stillLoading)
	defer remind.Stop()
	started := make(chan struct{})
	var reminder sync.WaitGroup
	reminder.Go(func() {
		for {
			select {
			case <-started:
				return
			case <-remind.C:
				w.log.Info("Waiting for the handler to load its model and call start().",
					slog.Duration("since", time.Since(begin).Round(time.Second)))
			}
		}
	})
	ready, err := w.handler.Start(ctx)
	close(started)
	reminder.Wait()
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	return ready, err
}

// watchHandler ends the fetching when the program behind the handler has ended.
func (w *Worker) watchHandler(ctx context.Context) {
	select {
	case <-w.handler.Exited():
		w.endFetch(errExited)
	case <-ctx.Done():
	}
}

func (w *Worker) fetchAll() {
	open, cancel := linger(w.fetching, w.work, w.cfg.StopLinger)
	defer cancel()
	w.ledger.setFetching(true)
	defer w.ledger.setFetching(false)
	w.fetch(w.fetching, open)
}

// drain waits for the jobs that are held and returns those that did not get settled in time.
func (w *Worker) drain() (unsettled []string) {
	ctx := w.work
	if w.cfg.GracePeriod > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.cfg.GracePeriod)
		defer cancel()
	}
	if w.ledger.awaitEmpty(ctx) {
		return nil
	}
	return w.ledger.owed()
}

// end stops the handler and says how the worker ended.
func (w *Worker) end(unsettled []string) (Reason, error) {
	reason, errs := Drained, []error(nil)
	switch cause := context.Cause(w.fetching); {
	case errors.Is(cause, errRefresh):
		reason = Refreshed
	case errors.Is(cause, errExited):
		reason = HandlerExited
		errs = append(errs, w.exitError())
	}
	if len(unsettled) > 0 {
		errs = append(errs, &UnsettledError{Jobs: unsettled})
		w.endWork(errReleased)
	}
	errs = append(errs, w.stopHandler(w.work))
	w.awaitTasks()
	return reason, errors.Join(errs...)
}

func (w *Worker) exitError() error {
	if err := w.handler.Err(); err != nil {
		return fmt.Errorf("%w: %w", errExited, err)
	}
	return errExited
}

// stopHandler gives the handler time to stop, but none if ctx has ended.
func (w *Worker) stopHandler(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, handlerStopTime)
	defer cancel()
	if err := w.handler.Stop(ctx); err != nil {
		return fmt.Errorf("the handler did not stop: %w", err)
	}
	return nil
}

// awaitTasks waits for the goroutines of the jobs.
func (w *Worker) awaitTasks() {
	done := make(chan struct{})
	go func() { w.tasks.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(abandonAfter):
		w.log.Warn("A handler did not come back; the worker ends without it.")
	}
}

func (w *Worker) refreshing() bool { return errors.Is(context.Cause(w.fetching), errRefresh) }
