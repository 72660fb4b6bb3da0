package main

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
)

// ends hears of every end that the platform accepts, by webhook.
type ends struct {
	url    string
	server *http.Server

	mu   sync.Mutex
	seen map[string]int
}

func listen() (*ends, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &ends{url: "http://" + listener.Addr().String() + "/", seen: map[string]int{}}
	e.server = &http.Server{Handler: e}
	go func() { _ = e.server.Serve(listener) }() // until close
	return e, nil
}

func (e *ends) close() { _ = e.server.Close() }

func (e *ends) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var job struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&job); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen[job.ID]++
}

// total is how many ends there were, of how many jobs, and how many jobs had several.
func (e *ends) total() (all, jobs, doubled int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range e.seen {
		all += n
		if n > 1 {
			doubled++
		}
	}
	return all, len(e.seen), doubled
}
