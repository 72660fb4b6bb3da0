// Package gateway is the platform as a program with an SDK of its own sees it: the routes of the worker API on a
// loopback port. Jobs that are given to Handle wait until the program takes them, and its reports resolve them.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

const (
	readHeaderTime = 10 * time.Second
	// drainTime is what the calls of a program that has ended get to be answered.
	drainTime = 200 * time.Millisecond
	// maxBody is far above what the platform takes: that a result is too large is for the worker to say, in its own words.
	maxBody = 64 << 20
)

// Options of a Gateway.
type Options struct {
	Lookup func(name string) string // the program's environment as it is without the gateway
	Log    *slog.Logger             // nil: slog.Default()

	// How long calls are held when there is nothing to answer.
	TakeHold time.Duration // job-take (5s)
	StopHold time.Duration // job-stop (25s)
	// ReadTime is how long the program may take to read an answer. A job that it has not read by then goes back to the
	// queue (1m).
	ReadTime time.Duration

	// Resized, if there is one, is called when Limit has changed.
	Resized func()
	// Fault, if there is one, is told why the program has to be ended: an *UnhealthyError, or ErrSilent.
	Fault func(error)
}

// ErrClosed is the end of a job whose program has ended.
var ErrClosed = errors.New("the program takes no jobs any more")

// errUntaken is the same for a job that the program has never got.
var errUntaken = fmt.Errorf("%w: %w", ErrClosed, protocol.ErrNotBegun)

// UnhealthyError is what a program says of itself before it leaves: one of its fitness checks has failed.
type UnhealthyError struct {
	Check  string
	Reason string
}

func (e *UnhealthyError) Error() string {
	return "it said that it is unhealthy: " + e.Check + ": " + e.Reason
}

// Gateway serves one program.
type Gateway struct {
	opts   Options
	log    *slog.Logger
	routes templates
	keys   keys
	addr   string
	server *http.Server
	serves sync.WaitGroup
	opened time.Time

	asked   chan struct{}   // closed by the first take
	life    context.Context // after its end no call is held any more
	endLife context.CancelFunc

	mu        sync.Mutex
	serving   bool // the program has come here for its jobs
	closed    bool
	owed      bool            // jobs were left when it was closed
	refreshed bool            // a result asked for a fresh worker
	limit     int             // as it was last told
	jobs      map[string]*job // by id, waiting and taken
	queue     []*job          // those that no take has got yet
	more      chan struct{}   // closed, and replaced, when the queue grows
	takes     int             // calls that wait for jobs …
	wanted    int             // … and how many jobs these would like
	stops     stops
	vigil     vigil
}

// New prepares a gateway from the program's environment. It is nil where that names no platform to ask for jobs.
func New(o Options) *Gateway {
	routes := readTemplates(o.Lookup)
	if routes == nil {
		return nil
	}
	o.TakeHold = cmp.Or(o.TakeHold, 5*time.Second)
	o.StopHold = cmp.Or(o.StopHold, 25*time.Second)
	o.ReadTime = cmp.Or(o.ReadTime, time.Minute)
	g := &Gateway{
		opts: o, log: o.Log, routes: routes, keys: readKeys(o.Lookup),
		asked: make(chan struct{}), more: make(chan struct{}),
		jobs: map[string]*job{}, limit: 1,
	}
	g.life, g.endLife = context.WithCancel(context.Background())
	if g.log == nil {
		g.log = slog.Default()
	}
	return g
}

// Open starts to listen.
func (g *Gateway) Open() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("no port for the program to ask for jobs: %w", err)
	}
	g.addr, g.opened = listener.Addr().String(), time.Now()
	routes := server.New(g, server.Options{
		Key: g.keys.main, Log: g.log, MaxResult: maxBody, MaxChunk: maxBody,
		Refused: func(_ context.Context, _, job string) { g.refused(job) },
	})
	g.server = &http.Server{
		Handler:           server.Guard(g.guard(routes), g.log),
		ReadHeaderTimeout: readHeaderTime,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	g.serves.Go(func() {
		if err := g.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("The program cannot ask for jobs any more.", "error", err)
		}
	})
	return nil
}

// Asked is closed by the first call for jobs.
func (g *Gateway) Asked() <-chan struct{} { return g.asked }

// Serve says that the program has come here for its jobs, and not elsewhere.
func (g *Gateway) Serve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serving = true
	g.vigil.patience = max(minSilence, 2*time.Since(g.opened))
	g.update()
}

// Release answers the calls that are held, so that a program which waits for them can end.
func (g *Gateway) Release() { g.endLife() }

// Leaves reports of a program that has ended whether it had said so: it asked for a fresh worker, and owed nothing.
func (g *Gateway) Leaves() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refreshed && !g.owed
}

// Close ends the service. Reports that the program had made when it ended still count; jobs that it owes one end with
// ErrClosed.
func (g *Gateway) Close() {
	g.Release()
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if g.server.Shutdown(ctx) != nil {
		_ = g.server.Close() // whoever still reads or writes has had his time
	}
	g.serves.Wait()
	g.endJobs()
}

func (g *Gateway) endJobs() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.owed = true, g.owed || len(g.jobs) > 0
	for _, j := range g.jobs {
		if j.taken {
			g.giveUp(j, ErrClosed)
		} else {
			g.giveUp(j, errUntaken)
		}
	}
	g.update()
}

// update follows every change: it tells who listens that the limit is another one, and sets the vigil. The lock is held.
func (g *Gateway) update() {
	if limit := g.work(); limit != g.limit {
		g.limit = limit
		if g.opts.Resized != nil {
			g.opts.Resized()
		}
	}
	g.watch()
}
