package program

import (
	"errors"
	"fmt"
	"io"
	"net"
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
				p.greet(conn)
				p.strike(conn)
			})
		}
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
		if err == nil {
			err = p.act(f)
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !isTimeout(err) {
			p.fail(fmt.Errorf("it broke the frame protocol: %w", err))
		}
		p.gone()
		return
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

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
