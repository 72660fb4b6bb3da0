package double

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"
)

func (d *Double) serve(w http.ResponseWriter, r *http.Request) {
	call, script, err := d.record(r)
	if err != nil { // the worker hung up half way through its body
		return
	}
	if script != nil && script(w, call) {
		return
	}
	switch call.Route {
	case Take, Batch:
		d.take(w, r, call)
	case Stop:
		d.wait(w, r)
	case Done, Stream, Ping:
		w.WriteHeader(http.StatusOK)
	default:
		http.NotFound(w, r)
	}
}

// take answers a single take with one object and a batch with an array, as the platform does.
func (d *Double) take(w http.ResponseWriter, r *http.Request, call Call) {
	size := 1
	if n, err := strconv.Atoi(call.Query.Get("batch_size")); err == nil && call.Route == Batch {
		size = n
	}
	expired := time.NewTimer(d.hold)
	defer expired.Stop()
	for {
		jobs, arrived := d.pop(r, size)
		switch {
		case len(jobs) > 0 && call.Route == Batch:
			Answer(w, jobs)
			return
		case len(jobs) > 0:
			Answer(w, jobs[0])
			return
		}
		select {
		case <-arrived:
		case <-expired.C:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		case <-d.quit:
			return
		}
	}
}

// pop takes up to n jobs off the queue, none for a taker that has hung up.
func (d *Double) pop(r *http.Request, n int) (jobs []json.RawMessage, arrived <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Context().Err() == nil {
		n = min(n, len(d.jobs))
		jobs, d.jobs = d.jobs[:n:n], d.jobs[n:]
	}
	return jobs, d.arrived
}

func (d *Double) wait(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(d.hold):
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	case <-d.quit:
	}
}

// Answer sends v as JSON.
func Answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// A failing write means that the worker is gone; its own calls will tell.
	_ = json.NewEncoder(w).Encode(v)
}

// Reset is a script that breaks the connection in place of an answer, so that the worker sees a reset, not
// an orderly end.
func Reset(w http.ResponseWriter, _ Call) bool {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // the worker is gone already
		return true
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // else it is an orderly end, which is a broken connection too
	}
	_ = conn.Close()
	return true
}

// Refuse makes the first n calls fail with an HTTP status and leaves the rest to the double.
func Refuse(n, status int, header http.Header) Script {
	left := make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	return func(w http.ResponseWriter, _ Call) bool {
		select {
		case <-left:
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			return true
		default:
			return false
		}
	}
}
