package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// While all slots are busy the handler is asked this often how many there should be.
	scaleInterval = time.Second
	// An answer that takes longer would hold up the next take.
	scaleLimit = 2 * time.Second
)

// awaitRoom waits until jobs can be taken, and asks the handler meanwhile how many it wants at a time.
func (w *Worker) awaitRoom(ctx context.Context) (room int, busy bool) {
	for ctx.Err() == nil {
		life := w.ledger.present()
		if life == nil || life.scaler == nil {
			return w.ledger.awaitRoom(ctx)
		}
		tick, cancel := context.WithTimeout(ctx, scaleInterval)
		w.ledger.awaitRoom(tick)
		cancel()
		w.rescale(ctx, life.scaler)
		w.ledger.mu.Lock()
		room, busy = w.ledger.room(), len(w.ledger.tasks) > 0
		w.ledger.mu.Unlock()
		if room > 0 {
			return room, busy
		}
	}
	return 0, true
}

// rescale asks the handler for its concurrency. An answer that makes no sense changes nothing.
func (w *Worker) rescale(ctx context.Context, scaler Scaler) {
	limited, cancel := context.WithTimeout(ctx, scaleLimit)
	defer cancel()
	current := int(w.concurrency.Load())
	wanted, err := scaler.Concurrency(limited, current)
	switch {
	case ctx.Err() != nil: // nobody wants the answer any more
		return
	case err != nil:
	case wanted < 1 || wanted > MaxConcurrency:
		err = fmt.Errorf("%d is not within 1 and %d", wanted, MaxConcurrency)
	default:
		w.concurrency.Store(int64(wanted))
		w.resize()
		return
	}
	w.complain("The concurrency function gave no usable answer; the last one stays.", err, slog.Int("concurrency", current))
}

// resize brings the number of slots up to date.
func (w *Worker) resize() {
	life := w.ledger.present()
	if life == nil {
		return // the next one is asked when it comes
	}
	slots := int(w.concurrency.Load())
	limit := life.handler.Limit()
	if limit > 0 {
		slots = min(slots, limit)
	}
	old := w.ledger.resize(slots)
	switch {
	case old == slots:
	case limit > 0 && slots == limit && life.scaler == nil:
		w.log.Info("The handler is not async, so fewer jobs run at a time than were asked for; --sync-threads is for handlers that are thread-safe.",
			slog.Int("asked", int(w.concurrency.Load())), slog.Int("jobs", slots))
	default: // where the handler has a say, it may say so often
		w.log.Debug("The number of jobs at a time has changed.", slog.Int("from", old), slog.Int("to", slots))
	}
}
