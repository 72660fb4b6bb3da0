package gpu

import (
	"context"
	"fmt"
	"sync"
	"time"

	"runpodctl-worker/internal/checks"
)

// passGap is how long a pass may rest between two of its checks. After it, what was found out is asked anew.
const passGap = 10 * time.Second

// surveyShare is the part of a pass's time that finding out may take, so that a hang there leaves time to tell it.
const surveyShare = 2

// pass is one round of GPU checks: they share a survey and a budget of time. A new one begins with another phase, with
// a check that has run in this one already, which is how a doctor asks again, and after a rest.
type pass struct {
	phase checks.Phase
	ran   map[string]bool
	left  time.Duration
	used  time.Time // when its last check ended, or began

	asking sync.Mutex // the one who holds it asks the driver; the others wait for what he finds out
	found  *survey
}

// overError is the cause of a context whose time is spent: that of a survey, or of all GPU work of a pass.
type overError struct {
	budget time.Duration
	pass   bool
}

func (e overError) Error() string {
	if e.pass {
		return fmt.Sprintf("the time for all GPU checks, %s, is over", e.budget)
	}
	return fmt.Sprintf("no answer within %s", e.budget)
}

// enter lets a check take part in a pass. Who has no id joins any that has not rested. Leave says that he is done.
func (d *Driver) enter(ctx context.Context, phase checks.Phase, id string) (_ context.Context, _ *pass, leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.current
	if p == nil || d.now().Sub(p.used) > passGap || id != "" && (p.phase != phase || p.ran[id]) {
		p = &pass{phase: phase, ran: map[string]bool{}, left: d.config.GPUTimeout.Value}
		d.current = p
	}
	p.ran[id] = true
	p.used = d.now()
	began := p.used
	ctx, cancel := context.WithTimeoutCause(ctx, max(p.left, 0), overError{d.config.GPUTimeout.Value, true})
	return ctx, p, func() {
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		p.used = d.now()
		p.left -= p.used.Sub(began)
	}
}

// inquire is the survey of a pass, made by the first who needs it. One that was cut off is not kept.
func (d *Driver) inquire(ctx context.Context, p *pass, seen presence) *survey {
	p.asking.Lock()
	defer p.asking.Unlock()
	if p.found != nil {
		return p.found
	}
	share := d.config.GPUTimeout.Value / surveyShare
	ctx, cancel := context.WithTimeoutCause(ctx, share, overError{budget: share})
	defer cancel()
	s := d.survey(ctx, seen)
	if _, spent := context.Cause(ctx).(overError); ctx.Err() == nil || spent { //nolint:errorlint // a cause of our own
		p.found = s
	}
	return s
}

// relist asks CUDA again within a pass, where the fabric was not ready.
func (d *Driver) relist(ctx context.Context, p *pass, s *survey) *survey {
	again := *s
	again.cuda = d.list(ctx, s.environ)
	p.asking.Lock()
	defer p.asking.Unlock()
	p.found = &again
	return &again
}
