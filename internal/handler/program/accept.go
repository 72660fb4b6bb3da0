package program

import (
	"errors"
	"fmt"

	"runpodctl-worker/internal/mistake"
)

// accept takes connections until the listener is closed.
func (p *Program) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		if conn := newConn(c); p.enlist(conn) {
			p.accepts.Go(func() {
				defer p.strike(conn)
				p.survive(func() { p.greet(conn) })
			})
		}
	}
}

// survive has a mistake in what reads the program's words cost this program, not the worker.
func (p *Program) survive(f func()) {
	if err := mistake.Catch(f); err != nil {
		p.log.Error("The handler's program is ended.", "error", err)
		p.fail(fmt.Errorf("its words could not be understood: %w", err))
	}
}

// enlist keeps a connection in sight, so that a stop can close it.
func (p *Program) enlist(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		_ = c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Program) strike(c *conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// readAll acts on frames until the connection ends. The program is of no use without either of its two.
func (p *Program) readAll(c *conn) {
	for {
		f, err := c.read()
		if err != nil && !errors.Is(err, errFrame) {
			p.gone() // why, its exit says
			return
		}
		if err == nil {
			err = p.act(f)
		}
		if err != nil {
			p.fail(fmt.Errorf("it broke the frame protocol: %w", err))
			return
		}
	}
}

// fail notes the first thing that makes an end of the program necessary.
func (p *Program) fail(err error) {
	p.mu.Lock()
	if p.fault == nil {
		p.fault = err
	}
	p.mu.Unlock()
	p.gone()
}

// gone says that the program cannot be reached any more.
func (p *Program) gone() { p.breakOnce.Do(func() { close(p.broken) }) }
