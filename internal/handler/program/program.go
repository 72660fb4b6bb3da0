// Package program runs a user's program as the handler of a worker. It is started once, unmodified, and whichever of
// two doors it uses first is its way in: a small Python package that comes first on its module path and answers for
// runpod.serverless.start(), or the gateway, which answers for the platform itself.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"runpodctl-worker/internal/handler/program/gateway"
	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

// Options say which program to run and how it is to behave.
type Options struct {
	Args           []string // the command; see Command for handler files
	Env            []string // nil: the environment of this process
	Dir            string   // empty: the working directory of this process
	Stdout, Stderr io.Writer
	Line           Line            // nil: what the program prints goes to Stdout and Stderr as it comes, but for Secrets
	Secrets        *redact.Secrets // are taken out of errors and of what the program prints
	Log            *slog.Logger    // nil: slog.Default()
	WorkerID       string          // RUNPOD_POD_ID of the program; empty: as in Env
	SyncThreads    int             // calls of a sync handler at a time; below 2: one, on the main thread
	Aggregate      bool            // as return_aggregate_stream
	Debugger       bool            // as --rp_debugger
	LogLevel       string          // as --rp_log_level
	// Spool makes the file of a large output; nil: they lie in the shim's directory, without a name.
	Spool     func() (protocol.Spool, error)
	ErrorLogs int  // so many of the last lines of a job go into its error
	NameJobs  bool // the lines of jobs reach Line as ParseNamed reads them
	NoShim    bool // the gateway is the only door; Python finds the runpod package that is installed
}

// Program is a handler that lives in a program of the user's.
type Program struct {
	opts Options
	log  *slog.Logger

	places   []string         // for the shim
	env      []string         // the program's, without what the doors need
	doors    *doors           // nil without the shim, as is listener
	gateway  *gateway.Gateway // nil where the environment names no platform
	listener net.Listener
	proc     *proc.Process
	streams  []stream // of proc
	spool    *spooler
	inside   inside
	accepts  sync.WaitGroup // the listener and every connection
	reading  sync.WaitGroup // the readers of the two connections of the program that serves

	ready     chan hello    // the first hello, with both connections in place
	resized   chan struct{} // holds a word when Limit may have changed
	broken    chan struct{} // closed when the program cannot be reached any more
	missed    chan struct{} // closed when a job came for a program that had ended
	exited    chan struct{}
	stopping  chan struct{} // closed by Stop
	stuck     chan struct{} // closed when a Stop could not end the program
	breakOnce sync.Once
	missOnce  sync.Once
	stopOnce  sync.Once
	stopErr   error

	mu      sync.Mutex
	closing bool // no connection is taken any more
	conns   map[*conn]bool
	control *conn // of the first hello, as is data
	data    *conn
	claimed bool // by one of the doors …
	through bool // … the gateway
	greeted hello
	pid     int // of the process that said hello, which may be far below the one that was started
	local   bool
	fault   error // why the program had to be ended
	err     error // final once exited is closed
	calls   map[uint32]*call
	byID    map[string]*call
	asks    map[uint32]chan []byte
	last    uint32
	async   atomic.Bool
}

// New prepares a program; Start runs it.
func New(o Options) *Program {
	p := &Program{
		opts: o, log: o.Log, places: places(),
		ready: make(chan hello, 1), resized: make(chan struct{}, 1),
		broken: make(chan struct{}), missed: make(chan struct{}), exited: make(chan struct{}), stopping: make(chan struct{}), stuck: make(chan struct{}),
		conns: map[*conn]bool{},
		calls: map[uint32]*call{},
		byID:  map[string]*call{},
		asks:  map[uint32]chan []byte{},
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	return p
}

// Start runs the program and returns when it wants its first job, that is, when its model is loaded.
// When it fails, nothing of the program is left.
func (p *Program) Start(ctx context.Context) (protocol.Ready, error) {
	if err := p.launch(); err != nil {
		return protocol.Ready{}, err
	}
	var asked <-chan struct{}
	if p.gateway != nil {
		asked = p.gateway.Asked()
	}
	for {
		select {
		case h := <-p.ready:
			return p.readyFor(h), nil
		case <-asked:
			if p.claimForGateway() {
				return p.throughGateway(), nil
			}
			asked = nil // it is the shim that says when the program is ready
		case <-p.exited:
			select {
			case h := <-p.ready: // it was ready once: its end is for Exited to tell
				return p.readyFor(h), nil
			default:
			}
			_ = p.Stop(ctx) // it has ended: only its directory is left to remove
			return protocol.Ready{}, p.Err()
		case <-ctx.Done():
			now, cancel := context.WithCancel(context.WithoutCancel(ctx))
			cancel()
			return protocol.Ready{}, errors.Join(fmt.Errorf("%s: %w", p.missing(), context.Cause(ctx)), p.Stop(now))
		}
	}
}

// missing says what the program has not done although it was waited for.
func (p *Program) missing() string {
	switch {
	case p.doors.found():
		return "the program has not called start() yet"
	case p.gateway == nil:
		return "the program has not imported runpod yet; if it should have by now: " + hides
	case p.doors == nil:
		return "the program has not asked for a job yet, at $RUNPOD_WEBHOOK_GET_JOB"
	default:
		return "the program has used neither way to its jobs yet: " +
			"runpod.serverless.start() in Python, or a call to $RUNPOD_WEBHOOK_GET_JOB"
	}
}

// Limit is 1, or the number of threads, for a sync handler, and 0 for one that has proved async. Behind the
// gateway it is the number of jobs that the program has or waits for.
func (p *Program) Limit() int {
	switch {
	case p.servedByGateway():
		return p.gateway.Limit()
	case p.async.Load():
		return 0
	default:
		return max(1, p.opts.SyncThreads)
	}
}

// Resized tells that Limit may have changed.
func (p *Program) Resized() <-chan struct{} { return p.resized }

func (p *Program) resize() {
	select {
	case p.resized <- struct{}{}:
	default: // told already
	}
}

// Exited is closed when the program has ended by itself, or because it broke the protocol.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// Err says how the program ended: an *ExitError.
func (p *Program) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
