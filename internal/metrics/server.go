package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"runpodctl-worker/internal/protocol/server"
)

// Bounds of what a caller can take of the worker.
const (
	readTime  = time.Second // many callers that never come to an end must not keep the probes out for long
	writeTime = 10 * time.Second
	idleTime  = 5 * time.Second // a scraper can connect again; the place is for others
	maxConns  = 128
	maxHeader = 16 << 10
	closeTime = time.Second
)

// loopback is the host of an address that names none: what is shown is for this machine, unless somebody says otherwise.
const loopback = "127.0.0.1"

// Address completes HOST:PORT, where the host or, of a port alone, the colon may be left out.
func Address(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("want HOST:PORT, or :PORT for this machine alone")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("%q is not a port", port)
	}
	if host == "" {
		host = loopback
	}
	return net.JoinHostPort(host, port), nil
}

// Local tells whether only this machine can reach an address.
func Local(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// Server shows Metrics on a port.
type Server struct {
	listener net.Listener
	server   *http.Server
	ended    sync.WaitGroup
}

// Serve listens on an address, as Address completes it. With profiles the Go profiles are there too.
func Serve(addr string, m *Metrics, profiles bool, log *slog.Logger) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return serve(listener, m, profiles, log), nil
}

func serve(listener net.Listener, m *Metrics, profiles bool, log *slog.Logger) *Server {
	s := &Server{listener: listener, server: &http.Server{
		Handler:        server.Guard(m.Handler(profiles, Local(listener.Addr().String())), log),
		ReadTimeout:    readTime,
		WriteTimeout:   writeTime,
		IdleTimeout:    idleTime,
		MaxHeaderBytes: maxHeader,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	s.ended.Go(func() {
		if err := s.server.Serve(netutil.LimitListener(listener, maxConns)); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("The metrics are no longer served.", slog.Any("error", err))
		}
	})
	return s
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close ends it; calls that are being answered get a moment.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close()
	}
	s.ended.Wait()
}

// Handler has all that there is to see. A local one answers only to names of this machine: a web page elsewhere could
// have its own name lead here.
func (m *Metrics) Handler(profiles, local bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", m.servePage)
	mux.HandleFunc("GET /healthz", probe(m.alive))
	mux.HandleFunc("GET /readyz", probe(m.prepared))
	mux.HandleFunc("GET /status.json", m.serveDocument)
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	}
	if !local {
		return mux
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Local(withPort(r.Host)) {
			http.Error(w, "this name is not this machine's", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}
