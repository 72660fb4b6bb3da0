package server

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"runpodctl-worker/internal/protocol"
)

// maxBatch bounds batch_size, so that one greedy worker cannot empty the queue into its memory.
const maxBatch = 1000

// Options of a Server. The zero value admits everyone and logs to slog's default.
type Options struct {
	Key string // what Authorization must carry, raw or as a Bearer token
	Log *slog.Logger

	MaxResult int64 // bytes of a job-done body (protocol.MaxResult)
	MaxChunk  int64 // bytes of a job-stream body (protocol.MaxChunk)

	// Refused, if there is one, is told of each job-done call that was refused for its body.
	Refused func(ctx context.Context, worker, job string)
}

// Server answers workers' calls. It is an http.Handler that accepts them under any prefix.
type Server struct {
	backend Backend
	opts    Options
	log     *slog.Logger
}

// New is a Server over a backend.
func New(backend Backend, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.MaxResult = cmp.Or(o.MaxResult, protocol.MaxResult)
	o.MaxChunk = cmp.Or(o.MaxChunk, protocol.MaxChunk)
	return &Server{backend: backend, opts: o, log: o.Log}
}

// ServeHTTP answers a call under whatever prefix: /v2/{endpoint}/job-take/…, /job-take/….
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r, withoutPrefix(r.URL.EscapedPath()))
}

// Serve answers a call whose escaped path without its prefix is given, as in "/job-take/w1".
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, path string) {
	if !Authorize(w, r, s.opts.Key) {
		return
	}
	t, ok := parseTarget(path)
	if !ok {
		WriteProblem(w, http.StatusNotFound, "no such route")
		return
	}
	method := http.MethodGet
	if segments[t.call] == 2 {
		method = http.MethodPost
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		WriteProblem(w, http.StatusMethodNotAllowed, t.call+" is not called with "+r.Method)
		return
	}
	if err := s.dispatch(w, r, t); err != nil {
		s.fail(w, r, t, err)
	}
}

func (s *Server) dispatch(w http.ResponseWriter, r *http.Request, t target) error {
	switch t.call {
	case "job-take":
		return s.take(w, r, t, 1)
	case "job-take-batch":
		n, err := strconv.Atoi(t.param(r.URL.RawQuery, "batch_size"))
		if err != nil || n < 1 {
			n = 1
		}
		return s.take(w, r, t, min(n, maxBatch))
	case "job-done":
		return s.done(w, r, t)
	case "job-stream":
		return s.chunk(w, r, t)
	case "job-stop":
		return s.stops(w, r, t)
	default:
		return s.ping(w, r, t)
	}
}

// fail answers an error; a caller that has gone gets, and costs, nothing more.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, t target, err error) {
	if r.Context().Err() != nil {
		return
	}
	if !WriteError(w, err) {
		s.log.Error("a worker's call failed", "call", t.call, "worker", t.worker, "job", t.job, "error", err)
	}
}

// stops answers with the ids that the worker should stop, as {"jobsToStop":[…]}.
func (s *Server) stops(w http.ResponseWriter, r *http.Request, t target) error {
	ids, err := s.backend.Stops(r.Context(), t.worker)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	b := []byte(`{"jobsToStop":[`)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, protocol.Quote(id)...)
	}
	WriteJSON(w, http.StatusOK, append(b, ']', '}'))
	return nil
}

func (s *Server) ping(w http.ResponseWriter, r *http.Request, t target) error {
	query := r.URL.RawQuery
	p := Ping{Version: t.param(query, "runpod_version")}
	if ids := t.param(query, "job_id"); ids != "" {
		p.Jobs = strings.Split(ids, ",")
	}
	if t.param(query, "status") == "unhealthy" {
		p.Unhealthy, p.Check, p.Reason = true, t.param(query, "check"), t.param(query, "reason")
	}
	if err := s.backend.Ping(r.Context(), t.worker, p); err != nil {
		return err
	}
	WriteJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}
