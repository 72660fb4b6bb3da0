package volume

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// progressEvery is how often somebody is told how far an operation is.
const progressEvery = 100 * time.Millisecond

// pulse tells that an operation gets on.
type pulse struct {
	phase                                atomic.Pointer[string]
	files, filesTotal, bytes, bytesTotal atomic.Int64
	beats                                atomic.Int64
}

// begin starts a phase that has so much to do.
func (p *pulse) begin(phase string, todo Count) {
	p.phase.Store(&phase)
	p.files.Store(0)
	p.bytes.Store(0)
	p.filesTotal.Store(int64(todo.Files))
	p.bytesTotal.Store(todo.Bytes)
	p.beat()
}

func (p *pulse) beat() { p.beats.Add(1) }

func (p *pulse) file() { p.files.Add(1); p.beat() }

func (p *pulse) moved(n int) { p.bytes.Add(int64(n)); p.beat() }

func (p *pulse) progress() Progress {
	var phase string
	if name := p.phase.Load(); name != nil {
		phase = *name
	}
	return Progress{phase, p.files.Load(), p.filesTotal.Load(), p.bytes.Load(), p.bytesTotal.Load()}
}

// guard runs work in a goroutine of its own, and leaves it behind where it hangs: a system call to a dead volume cannot be
// broken off. The context of what was left behind is cancelled, so that it changes nothing should it ever come back.
func guard[T any](ctx context.Context, c *Cache, work func(context.Context, *pulse) (T, error)) (T, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		value T
		err   error
	}
	p, done := &pulse{}, make(chan outcome, 1)
	go func() {
		value, err := work(inner, p)
		done <- outcome{value, err}
	}()

	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	stopped, limit := ctx.Done(), c.limits.stall
	beats, since := p.beats.Load(), time.Now()
	for {
		select {
		case o := <-done:
			c.tell(p)
			return o.value, o.err
		case <-stopped:
			stopped, limit, since = nil, c.limits.grace, time.Now()
			continue
		case <-tick.C:
			c.tell(p)
		}
		if now := p.beats.Load(); now != beats && stopped != nil {
			beats, since = now, time.Now()
		}
		if time.Since(since) >= limit {
			var none T
			if err := ctx.Err(); err != nil {
				return none, err
			}
			return none, fmt.Errorf("%s: %w for %s", c.opts.Volume, ErrStalled, limit)
		}
	}
}

func (c *Cache) tell(p *pulse) {
	if c.opts.Progress != nil {
		c.opts.Progress(p.progress())
	}
}
