package program

import (
	"context"
	"fmt"
	"time"
)

// Stop ends the program: start() returns, so that the code after it can run; then TERM for what is
// left, and KILL when ctx ends. It returns when nothing of the program is left.
func (p *Program) Stop(ctx context.Context) error {
	if p.proc == nil {
		return nil
	}
	p.stopOnce.Do(func() {
		close(p.stopping)
		p.stopErr = p.stopNow(ctx)
	})
	return p.stopErr
}

func (p *Program) stopNow(ctx context.Context) error {
	p.mu.Lock()
	serving := p.control != nil
	p.mu.Unlock()
	if p.gateway != nil {
		p.gateway.Release()
	}
	if serving {
		p.order(kindShutdown, 0, nil)
		p.waitFor(ctx)
	}
	err := p.proc.Stop(ctx)
	if err != nil { // it will not end, or nobody knows when: nothing may wait for that
		p.fail(fmt.Errorf("it could not be ended: %w", err))
		close(p.stuck)
	}
	p.shut()
	<-p.exited
	p.doors.remove()
	return err
}

// waitFor gives the program half of the time that is left, or lingerTime, to leave by itself.
func (p *Program) waitFor(ctx context.Context) {
	wait := lingerTime
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline) / 2
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.proc.Exited():
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (p *Program) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closing = true
	for c := range p.conns {
		_ = c.Close()
	}
}
