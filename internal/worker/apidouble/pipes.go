package apidouble

import (
	"context"
	"net"
)

// Pipes is a network within the process, so that time in a synctest bubble can be the test's. It is a net.Listener.
type Pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

// NewPipes makes a network with one server.
func NewPipes() Pipes { return Pipes{make(chan net.Conn), make(chan struct{})} }

// Dial connects to the server, whatever it is called.
func (p Pipes) Dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.conns <- far
	return near, nil
}

// Accept implements net.Listener.
func (p Pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p Pipes) Close() error { close(p.closed); return nil }

// Addr implements net.Listener.
func (p Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
