package fault

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// maxDrain bounds what is read of a body that nobody wants: without that the connection breaks before the answer is read.
const maxDrain = 64 << 20

// Wrap is a handler whose calls go wrong as the rules say.
func (i *Injector) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := i.active.Load()
		if s == nil {
			next.ServeHTTP(w, r)
			return
		}
		rule := s.pick(parseCall(r.URL.Path), false)
		if rule == nil {
			next.ServeHTTP(w, r)
			return
		}
		i.apply(rule, next, w, r)
	})
}

func (i *Injector) apply(rule *Rule, next http.Handler, w http.ResponseWriter, r *http.Request) {
	if rule.Delay > 0 {
		i.pause(time.Duration(rule.Delay), r)
	}
	switch {
	case rule.Reset == Before:
		breakOff(w)
	case rule.Reset == After:
		next.ServeHTTP(&lost{header: http.Header{}}, r)
		breakOff(w)
	case rule.Status != 0:
		_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
		rule.answer(w)
	case rule.Truncate != nil:
		cut := &cut{ResponseWriter: w, left: *rule.Truncate}
		next.ServeHTTP(cut, r)
		_ = cut.FlushError()
		panic(http.ErrAbortHandler) // the server's word for a connection that breaks
	case rule.ContentType != "":
		next.ServeHTTP(&retyped{w, rule.ContentType}, r)
	default:
		next.ServeHTTP(w, r)
	}
}

func (i *Injector) pause(d time.Duration, r *http.Request) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-i.done:
	}
}

// answer writes what a rule says in place of the emulator.
func (r *Rule) answer(w http.ResponseWriter) {
	if r.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
	body := []byte(r.Body)
	if r.Body == "" && r.Status >= http.StatusBadRequest {
		body = protocol.NewProblem(r.Status, "a fault that was asked for").JSON()
	}
	if r.ContentType != "" {
		w = &retyped{w, r.ContentType}
	}
	server.WriteJSON(w, r.Status, body)
}

// breakOff resets the connection; where there is none to reset, the answer is broken off.
func breakOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes the close a reset
	}
	_ = conn.Close()
}
