package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// request is one HTTP request that is sent again and again.
type request struct{ method, url, body string }

// rate sends the request over a number of connections for a while and returns the answers per second.
// It writes to the sockets itself, so as to leave the machine to the server.
func rate(r request, connections int, warmUp, span time.Duration) (float64, error) {
	u, err := url.Parse(r.url)
	if err != nil {
		return 0, err
	}
	wire := r.wire(u)

	var answered atomic.Int64
	errs := make([]error, connections)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for c := range connections {
		all.Go(func() { errs[c] = repeat(u.Host, wire, &answered, stop) })
	}
	time.Sleep(warmUp)
	before, began := answered.Load(), time.Now()
	time.Sleep(span)
	count, took := answered.Load()-before, time.Since(began)
	close(stop)
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("%s %s: %w", r.method, r.url, err)
		}
	}
	return float64(count) / took.Seconds(), nil
}

// repeat is one connection's part.
func repeat(host string, wire []byte, answered *atomic.Int64, stop <-chan struct{}) error {
	c, err := dial(host)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		if err := c.call(wire); err != nil {
			return err
		}
		answered.Add(1)
	}
}

// wire is the request as it is sent.
func (r request) wire(u *url.URL) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		r.method, u.RequestURI(), u.Host, len(r.body), r.body)
}

// connection makes one call after the other.
type connection struct {
	net.Conn
	reader *bufio.Reader
}

func dial(host string) (*connection, error) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	return &connection{conn, bufio.NewReader(conn)}, nil
}

// call demands that the answer is 200.
func (c *connection) call(wire []byte) error {
	if _, err := c.Write(wire); err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s: %s", resp.Status, body)
	}
	return nil
}

// times sends the request a number of times over one connection.
func (r request) times(count int) error {
	u, err := url.Parse(r.url)
	if err != nil {
		return err
	}
	c, err := dial(u.Host)
	if err != nil {
		return err
	}
	defer c.Close()
	for wire := r.wire(u); count > 0; count-- {
		if err := c.call(wire); err != nil {
			return fmt.Errorf("%s %s: %w", r.method, r.url, err)
		}
	}
	return nil
}
