package program

import (
	"context"
	"errors"
	"time"
)

const (
	lingerTime = 5 * time.Second        // a program may tidy up after start() returned
	drainTime  = 200 * time.Millisecond // frames that were written before the program ended
)

// watch notes the end of the program, whatever ended it.
func (p *Program) watch() {
	select {
	case <-p.proc.Exited():
	case <-p.broken:
		p.end()
	}
	p.drain()
	p.mu.Lock()
	p.err = p.reason()
	p.mu.Unlock()
	close(p.exited)
}

// end waits for a program that cannot be reached any more, and helps it when it takes too long.
func (p *Program) end() {
	p.mu.Lock()
	linger := lingerTime
	if p.fault != nil {
		linger = 0
	}
	p.mu.Unlock()
	select {
	case <-p.proc.Exited():
		return
	case <-p.stopping:
		<-p.proc.Exited()
		return
	case <-time.After(linger):
	}
	p.fail(errors.New("it stopped to take jobs and went on running"))
	ctx, cancel := context.WithTimeout(context.Background(), lingerTime)
	defer cancel()
	if err := p.proc.Stop(ctx); err != nil {
		p.log.Error("The program could not be ended.", "error", err)
		return
	}
	<-p.proc.Exited()
}

// drain reads what the program had written when it ended, then lets its readers go.
func (p *Program) drain() {
	p.mu.Lock()
	p.closing = true
	for c := range p.conns {
		_ = c.SetReadDeadline(time.Now().Add(drainTime)) // fails only on a closed connection
	}
	p.mu.Unlock()
	p.reading.Wait()
}
