package ready

import (
	"context"
	"net"
)

// tcp is ready when a connection to the address is accepted.
type tcp string

func (t tcp) String() string { return "tcp:" + string(t) }

func (t tcp) Check(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", string(t))
	if err != nil {
		return err
	}
	return conn.Close()
}
