package apidouble

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"runpodctl-worker/internal/protocol"
)

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := record(r)
	a.mu.Lock()
	a.calls = append(a.calls, call)
	reply, hook := a.nextReply(call)
	a.mu.Unlock()

	if hook != nil { // without the lock: it may ask about the calls so far, this one included
		reply = hook(*call)
	}
	if reply != nil {
		if !wait(r.Context(), reply.Delay) {
			return
		}
		if reply.Drop {
			panic(http.ErrAbortHandler)
		}
		if !reply.Usual {
			a.write(w, call, *reply)
			return
		}
	}
	switch call.Kind {
	case Take:
		a.take(w, r, call)
	case Stop:
		a.poll(r.Context(), func() bool { return len(a.stops) > 0 }, func() {
			body, _ := json.Marshal(map[string]any{"jobsToStop": a.stops})
			a.stops = nil
			a.writeLocked(w, call, Reply{Body: string(body)})
		}, func() { a.writeLocked(w, call, Reply{Status: http.StatusNoContent}) })
	default:
		a.write(w, call, Reply{Body: "{}"})
	}
}

func record(r *http.Request) *Call {
	body, _ := io.ReadAll(r.Body)
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/") // v2, endpoint, call, worker, job
	call := &Call{At: time.Now(), Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header, Body: string(body)}
	if len(parts) > 3 {
		call.Kind, call.Worker = strings.TrimSuffix(parts[2], "-batch"), parts[3]
	}
	if len(parts) > 4 {
		call.Job = parts[4]
	}
	if call.Kind == Done && strings.HasPrefix(call.Body, `{"status":"`+string(protocol.InProgress)) {
		call.Kind = Progress
	}
	return call
}

func (a *API) nextReply(call *Call) (*Reply, func(Call) *Reply) {
	if script := a.scripts[call.Kind]; len(script) > 0 {
		a.scripts[call.Kind] = script[1:]
		return &script[0], nil
	}
	return nil, a.hooks[call.Kind]
}

func (a *API) take(w http.ResponseWriter, r *http.Request, call *Call) {
	n, err := strconv.Atoi(call.Query.Get("batch_size"))
	batch := err == nil
	a.poll(r.Context(), func() bool { return len(a.queue) > 0 }, func() {
		n = min(max(n, 1), len(a.queue))
		jobs := a.queue[:n]
		a.queue = a.queue[n:]
		body := jobs[0]
		if batch {
			body = "[" + strings.Join(jobs, ",") + "]"
		}
		a.writeLocked(w, call, Reply{Body: body})
	}, func() { a.writeLocked(w, call, Reply{Status: http.StatusNoContent}) })
}

// poll waits until there is something, and calls found or none under the lock; neither if the caller has gone.
func (a *API) poll(ctx context.Context, something func() bool, found, none func()) {
	limit := time.NewTimer(a.Hold)
	defer limit.Stop()
	for {
		a.mu.Lock()
		if ctx.Err() == nil && something() {
			found()
			a.mu.Unlock()
			return
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			a.mu.Lock()
			none()
			a.mu.Unlock()
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *API) write(w http.ResponseWriter, call *Call, reply Reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writeLocked(w, call, reply)
}

func (a *API) writeLocked(w http.ResponseWriter, call *Call, reply Reply) {
	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	call.Status = reply.Status
	w.Header().Set("Content-Type", "application/json")
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body)
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
