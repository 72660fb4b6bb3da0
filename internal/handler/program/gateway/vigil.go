package gateway

import (
	"context"
	"errors"
	"time"
)

const (
	// goneTime is how long an official SDK that broke off a call may be silent. It never does so while it lives: its own
	// limits are far above the time that calls are held.
	goneTime = 5 * time.Second
	// minSilence is how long any program may be silent that works on nothing. A start script that starts its Python
	// again gets twice the time that the first one took to load, if that is longer.
	minSilence = 2 * time.Minute
	silentStep = time.Second
)

// ErrSilent is the fault of a program that stays, but is of no use any more.
var ErrSilent = errors.New("it has stopped asking for jobs")

// errGone is the end of a job whose taker has died below a program that goes on.
var errGone = errors.New("the program's process that had the job is gone: it broke off its calls and makes no others")

// vigil finds out that nobody is there any more. It is guarded by the gateway.
type vigil struct {
	calls    int           // that are open, but for heartbeats
	several  bool          // processes ask for jobs, so that none can speak for all
	severed  bool          // the latest call was broken off
	patience time.Duration // with a program that is silent and works on nothing
	timer    *time.Timer
	round    int
}

// begin notes a call. The function that it returns notes its end.
func (g *Gateway) begin(ctx context.Context) (end func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vigil.calls++
	g.vigil.severed = false
	g.watch()
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.vigil.calls--
		g.vigil.severed = ctx.Err() != nil && callerOf(ctx).official
		g.watch()
	}
}

// watch sets the timer anew where nobody calls. The lock is held.
func (g *Gateway) watch() {
	v := &g.vigil
	v.round++
	if v.timer != nil {
		v.timer.Stop()
	}
	taken := len(g.jobs) - len(g.queue)
	switch {
	case !g.serving, g.closed, g.life.Err() != nil, v.calls > 0:
	case taken == 0:
		g.after(v.patience, func() error { return ErrSilent })
	case v.severed:
		g.after(goneTime, func() error {
			for _, j := range g.taken() {
				g.giveUp(j, errGone)
			}
			return nil
		})
	}
}

// after acts with the lock held, unless something has happened before, and passes a fault on without it. It waits step by
// step: of the time for which the container was frozen, and the program silent because of that, at most one counts.
func (g *Gateway) after(d time.Duration, act func() (fault error)) {
	round, step := g.vigil.round, min(d, silentStep)
	g.vigil.timer = time.AfterFunc(step, func() {
		g.mu.Lock()
		var fault error
		switch {
		case g.vigil.round != round:
		case d > step:
			g.after(d-step, act)
		default:
			fault = act()
		}
		g.mu.Unlock()
		if fault != nil && g.opts.Fault != nil {
			g.opts.Fault(fault)
		}
	})
}
