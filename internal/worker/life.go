package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
)

const (
	// handlerStopTime is what the handler's program gets to end by itself once every job is settled.
	handlerStopTime = 10 * time.Second
	// bootStopTime is what it gets when the worker is told to stop before any job has come.
	bootStopTime = time.Second
	// stillLoading is the time between two lines that say what a start waits for.
	stillLoading = 30 * time.Second
)

// life is one life of the handler's program.
type life struct {
	handler Handler
	scaler  Scaler // nil unless the handler has a say in the concurrency
	ready   protocol.Ready
	loading time.Duration // how long it took to get ready
	doomed  chan struct{} // closed when the program has to be killed

	// Guarded by the ledger.
	inside    map[*task]bool // jobs that the handler has
	fallen    int            // jobs that came back with an error after its end
	lost      []*task        // those of them that wait for their fate, since they are still wanted
	judged    bool           // their fate is decided
	overdue   int            // jobs that should have left it by now; while there are any, no other goes in
	condemned bool           // doomed is closed
	sick      string         // why it cannot use its GPU any more, in the words of the job …
	foundBy   *task          // … that found out
}

// over tells whether the program has ended.
func (l *life) over() bool { return closed(l.handler.Exited()) }

// begin starts the handler's program and opens it for jobs. If it fails, nothing of the program is left.
func (w *Worker) begin(ctx context.Context, first bool) (*life, error) {
	if first && w.cfg.Prepare != nil {
		w.cfg.Prepare(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	l := &life{handler: w.factory(), doomed: make(chan struct{}), inside: map[*task]bool{}}
	if err := w.awaitReady(ctx, l, first); err != nil {
		stop, cancel := w.work, context.CancelFunc(func() {})
		if ctx.Err() != nil { // no job can be lost: whoever told it to stop need not wait for a check or a load that hangs
			stop, cancel = context.WithTimeout(w.work, bootStopTime)
		}
		defer cancel()
		return nil, errors.Join(err, stopHandler(stop, l.handler))
	}
	if scaler, ok := l.handler.(Scaler); ok && l.ready.Modifier {
		l.scaler = scaler
	}
	w.ledger.open(l)
	w.resize()
	w.log.Info("Ready for jobs.", slog.String("handler", l.ready.Name))
	return l, nil
}

func (w *Worker) awaitReady(ctx context.Context, l *life, first bool) (err error) {
	began := w.clock.elapsed()
	if l.ready, err = w.startHandler(ctx, l.handler); err != nil {
		return fmt.Errorf("the handler did not start: %w", err)
	}
	l.loading = w.clock.elapsed() - began
	if w.cfg.OnReady != nil {
		return w.cfg.OnReady(ctx, l.handler, l.ready, first)
	}
	return nil
}

// startHandler starts the program and says now and then that it is still being waited for.
func (w *Worker) startHandler(ctx context.Context, h Handler) (protocol.Ready, error) {
	limit := w.cfg.ReadyTimeout
	ctx, cancel := w.clock.timeout(ctx, limit, fmt.Errorf("it was not ready after %s", limit))
	defer cancel()
	began := w.clock.elapsed()
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
					slog.Duration("since", (w.clock.elapsed()-began).Round(time.Second)))
			}
		}
	})
	ready, err := h.Start(ctx)
	close(started)
	reminder.Wait()
	if err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)) {
		err = context.Cause(ctx)
	}
	return ready, err
}

// stopHandler gives the handler time to stop, but none if ctx has ended.
func stopHandler(ctx context.Context, h Handler) error {
	ctx, cancel := context.WithTimeout(ctx, handlerStopTime)
	defer cancel()
	if err := h.Stop(ctx); err != nil {
		return fmt.Errorf("the handler did not stop: %w", err)
	}
	return nil
}

// killHandler ends what is left of a program, at once.
func killHandler(ctx context.Context, h Handler) error {
	now, cancel := context.WithCancel(ctx)
	cancel()
	return stopHandler(now, h)
}
