package client

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
)

// Renew closes the connections that are idle; cut closes those that are in use now, if they still are, and ends their
// calls. It is for a worker that was frozen, whose connections may have died without a word.
func (c *Client) Renew() (cut func()) {
	before := c.conns.list()
	c.Close()
	return func() {
		for _, conn := range before {
			_ = conn.Close() // most have been closed since
		}
	}
}

// conns are the connections that are open.
type conns struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	mu   sync.Mutex
	open map[*conn]bool
}

type conn struct {
	net.Conn
	of *conns
}

func (c *conns) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	inner, err := c.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	dialled := &conn{Conn: inner, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[dialled] = true
	return dialled, nil
}

func (c *conns) list() []*conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.open))
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
