package apidouble

import (
	"context"
	"net"
	"sync"
)

// Blackhole is a network whose connections can go silent without being closed. The zero value is the real network.
type Blackhole struct {
	// Through makes the connections; nil for the network.
	Through func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns []*swallowed
}

type swallowed struct {
	net.Conn
	silent chan struct{} // closed when nothing comes through any more
	deaf   chan struct{} // closed when nothing is even taken: writes block
	closed chan struct{}
	once   sync.Once
}

// Dial connects.
func (b *Blackhole) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	through := b.Through
	if through == nil {
		through = new(net.Dialer).DialContext
	}
	conn, err := through(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s := &swallowed{Conn: conn, silent: make(chan struct{}), deaf: make(chan struct{}), closed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, s)
	return s, nil
}

// Swallow loses whatever is sent from now on over the connections made so far.
func (b *Blackhole) Swallow() { b.end(func(s *swallowed) { close(s.silent) }) }

// Stall is as if the other ends of the connections made so far had stopped reading.
func (b *Blackhole) Stall() { b.end(func(s *swallowed) { close(s.deaf); close(s.silent) }) }

func (b *Blackhole) end(how func(*swallowed)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.conns {
		how(s)
	}
	b.conns = nil
}

func (s *swallowed) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	select {
	case <-s.silent:
		<-s.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (s *swallowed) Write(p []byte) (int, error) {
	select {
	case <-s.deaf:
		<-s.closed
		return 0, net.ErrClosed
	default:
	}
	select {
	case <-s.silent:
		return len(p), nil
	default:
		return s.Conn.Write(p)
	}
}

func (s *swallowed) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}
