package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// pulse is the time between two looks at the clock while the worker is awake.
	pulse = time.Second
	// freeze is a time without a look that no busy machine explains.
	freeze = 5 * time.Second
	// lastAnswers is what calls get, after a freeze, to read what arrived meanwhile.
	lastAnswers = time.Second
)

// clock tells how long the worker has been awake. The platform may freeze a container for minutes; time limits that went
// on meanwhile would all trip when it wakes up. Where the process is stopped, the monotonic clock goes on; where the
// machine is suspended, only the wall clock does: a jump of either is a freeze.
type clock struct {
	now func() time.Time

	froze chan time.Duration // how long a freeze was

	mu    sync.Mutex
	seen  time.Time
	awake time.Duration
	thaw  chan struct{} // closed after the next freeze
}

func newClock(now func() time.Time) *clock {
	return &clock{now: now, froze: make(chan time.Duration, 1), seen: now(), thaw: make(chan struct{})}
}

// start begins to look: a time in which nobody did is no freeze.
func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.now()
}

// elapsed is how long the worker has been awake. Whoever asks first after a freeze finds it.
func (c *clock) elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	passed := now.Sub(c.seen)
	gap := max(passed, now.Round(0).Sub(c.seen.Round(0)))
	c.seen = now
	if gap < freeze {
		c.awake += passed
		return c.awake
	}
	c.awake += min(passed, pulse)
	select {
	case c.froze <- gap:
	default: // the one before has not been seen to
	}
	return c.awake
}

// wake tells everybody who waits that a freeze is over.
func (c *clock) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.thaw)
	c.thaw = make(chan struct{})
}

// thawed is closed after the next freeze.
func (c *clock) thawed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.thaw
}

// sleep waits until the worker has been awake for d; it returns false when ctx ended before.
func (c *clock) sleep(ctx context.Context, d time.Duration) bool {
	end := c.elapsed() + d
	for left := d; left > 0; left = end - c.elapsed() {
		if !sleep(ctx, left) {
			return false
		}
	}
	return true
}

// timeout is a context that ends with a cause when the worker has been awake for d; 0 is no limit.
func (c *clock) timeout(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if d > 0 {
		go func() {
			if c.sleep(ctx, d) {
				cancel(cause)
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// watchFreezes keeps the clock, and sees to what a freeze leaves behind.
func (w *Worker) watchFreezes(ctx context.Context) {
	tick := time.NewTicker(pulse)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.clock.elapsed()
		case gap := <-w.clock.froze:
			w.log.Info("The worker was frozen; it goes on with fresh connections.", slog.Duration("for", gap.Round(time.Second)))
			w.renew(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// renew replaces the connections, whose other ends have given up, and wakes whoever waits to make a call.
func (w *Worker) renew(ctx context.Context) {
	cut := func() {}
	if renewer, ok := w.platform.(Renewer); ok {
		cut = renewer.Renew()
	}
	w.clock.wake()
	if sleep(ctx, lastAnswers) {
		cut()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// pause waits before a call is made again. A thaw ends it, and what the pace has grown to: the trouble was that of
// another time. It returns false when ctx ended before.
func pause(ctx context.Context, thawed <-chan struct{}, pace *backoff.ExponentialBackOff, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-thawed:
		pace.Reset()
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
