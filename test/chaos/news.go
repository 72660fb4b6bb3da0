package main

import (
	"crypto/sha256"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
)

// news hears of the ends of jobs, by webhook.
type news struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	seen map[string]map[[sha256.Size]byte]bool // what was told of each job: the same end may be told twice
}

func listen() (*news, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &news{url: "http://" + listener.Addr().String() + "/", seen: map[string]map[[sha256.Size]byte]bool{}}
	n.server = &http.Server{Handler: n}
	go func() { _ = n.server.Serve(listener) }() // until close
	return n, nil
}

func (n *news) close() { _ = n.server.Close() }

func (n *news) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var job struct{ ID string }
	if err == nil {
		err = json.Unmarshal(body, &job)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen[job.ID] == nil {
		n.seen[job.ID] = map[[sha256.Size]byte]bool{}
	}
	n.seen[job.ID][sha256.Sum256(body)] = true
}

// total is of how many jobs there was news, and of how many different news.
func (n *news) total() (jobs, doubled int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, told := range n.seen {
		if len(told) > 1 {
			doubled++
		}
	}
	return len(n.seen), doubled
}
