package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// items takes the items of streams of numbers. It reads and writes the sockets itself, so as to leave the machine to the workers.
type items struct {
	listener net.Listener
	count    atomic.Int64
	disorder atomic.Int64 // those of them that are not the number that was due
	streams  sync.Map     // path → how many items of it have come
}

func newItems() (*items, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &items{listener: listener}
	go i.accept()
	return i, nil
}

// env sends a worker's items here, instead of to the referee.
func (i *items) env() string {
	return "RUNPOD_WEBHOOK_POST_STREAM=http://" + i.listener.Addr().String() + "/$RUNPOD_POD_ID/$ID?gpu=none"
}

func (i *items) close() { _ = i.listener.Close() }

func (i *items) accept() {
	for {
		conn, err := i.listener.Accept()
		if err != nil { // closed
			return
		}
		go i.serve(conn)
	}
}

// serve answers the requests of a connection until the worker closes it.
func (i *items) serve(conn net.Conn) {
	defer conn.Close()
	for r := bufio.NewReader(conn); ; {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		i.take(req.URL.Path, body)
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

func (i *items) take(stream string, body []byte) {
	var post struct{ Output int64 }
	err := json.Unmarshal(body, &post)
	due, ok := i.streams.Load(stream)
	if !ok {
		due, _ = i.streams.LoadOrStore(stream, new(atomic.Int64))
	}
	if number := due.(*atomic.Int64).Add(1) - 1; err != nil || post.Output != number {
		i.disorder.Add(1)
	}
	i.count.Add(1)
}
