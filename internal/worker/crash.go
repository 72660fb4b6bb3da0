package worker

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// returnTime is what the jobs of a program that has ended get to come back, before their fate is decided without them.
const returnTime = time.Second

// crasherText is the error of a job that is not run again.
const crasherText = "worker died while running this job"

// supervise starts the program again, each time it has ended, until ctx ends or it will not stay up.
func (w *Worker) supervise(ctx context.Context, l *life) {
	for {
		if !w.watch(ctx, l) {
			return
		}
		err := w.bury(ctx, l)
		if err == nil {
			l, err = w.again(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.log.Error("The handler's program does not stay up; the worker ends.", slog.Any("error", err))
			w.endFetch(fmt.Errorf("%w: %w", errExited, err))
			w.ledger.close()
			return
		}
	}
}

// watch returns true when the program has ended or has to.
func (w *Worker) watch(ctx context.Context, l *life) bool {
	var resized <-chan struct{}
	if r, ok := l.handler.(Resizer); ok {
		resized = r.Resized()
	}
	for {
		select {
		case <-l.handler.Exited():
			return true
		case <-l.doomed:
			return true
		case _, open := <-resized:
			if !open {
				resized = nil
			}
			w.resize()
		case <-ctx.Done():
			return false
		}
	}
}

// bury ends what is left of a program and decides about the jobs that were lost with it. The error says that it
// has crashed, or found its GPU out of order, too often.
func (w *Worker) bury(ctx context.Context, l *life) error {
	killed, sick := w.ledger.retire(l)
	if killed {
		w.reap(ctx, l) // only then do its jobs come back
	}
	limited, cancel := context.WithTimeout(ctx, returnTime)
	defer cancel()
	culprit := w.ledger.judge(limited, l)
	cause := l.handler.Err()
	switch {
	case sick != "":
		cause = fmt.Errorf("it could not use its GPU any more: %s", sick)
	case killed:
		return nil
	}
	crashes := w.ledger.crashed()
	if !killed {
		w.log.Error("The handler's program ended by itself.", slog.Any("error", cause), slog.Int("in a row", crashes))
		if culprit != nil {
			w.crashers.blame(culprit.job.ID)
			w.cfg.Journal.Crashed(culprit.job.ID)
		}
		w.reap(ctx, l)
	}
	if crashes < w.cfg.MaxRestarts {
		return nil
	}
	err := fmt.Errorf("%d times in a row, with no job done in between", crashes)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

func (w *Worker) reap(ctx context.Context, l *life) {
	if err := killHandler(ctx, l.handler); err != nil {
		w.log.Error("The end of the program is not clean.", slog.Any("error", err))
	}
}

// again starts the program anew. A worker that is draining needs it only for jobs that it still has to run.
func (w *Worker) again(ctx context.Context) (*life, error) {
	if !w.ledger.awaitNeed(ctx, w.fetching) {
		return nil, ctx.Err()
	}
	w.log.Info("Starting the handler's program again.")
	w.cfg.Observer.restarted()
	l, err := w.begin(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("it could not be started again: %w", err)
	}
	return l, nil
}

// crashers counts how often jobs that had the program to themselves took it down with them.
type crashers struct {
	mu      sync.Mutex
	crashes map[string]int
}

func (c *crashers) blame(job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashes == nil {
		c.crashes = map[string]int{}
	}
	c.crashes[job]++
}

// barred tells whether a job has done so as often as it may; a negative limit is none.
func (c *crashers) barred(job string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return limit > 0 && c.crashes[job] >= limit
}
