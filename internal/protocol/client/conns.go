package client

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// renewGrace is what calls in flight get to read what has arrived, before their connections are cut.
const renewGrace = time.Second

// Renew lets go of every connection that is open now: those that are idle at once, those in use a moment later. It
// is for a worker that was frozen, whose connections may have died without a word. It returns when that is done, or when
// ctx ends.
func (c *Client) Renew(ctx context.Context) {
	before := c.conns.list()
	c.Close()
	timer := time.NewTimer(renewGrace)
	defer timer.Stop()
	select {
	case <-timer.C:
		for _, conn := range before {
			_ = conn.Close() // most have been closed since
		}
	case <-ctx.Done():
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
