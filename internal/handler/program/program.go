// Package program runs a user's program as the handler of a worker. It is started once, unmodified;
// a small Python package that comes first on its module path answers for runpod.serverless.start().
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"

	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/protocol"
)

// Options say which program to run and how it is to behave.
type Options struct {
	Args           []string // the command; see Command for handler files
	Env            []string // nil: the environment of this process
	Dir            string   // empty: the working directory of this process
	Stdout, Stderr io.Writer
	Log            *slog.Logger // nil: slog.Default()
	WorkerID       string       // RUNPOD_POD_ID of the program; empty: as in Env
	SyncThreads    int          // calls of a sync handler at a time; below 2: one, on the main thread
	Aggregate      bool         // as return_aggregate_stream
	Debugger       bool         // as --rp_debugger
	LogLevel       string       // as --rp_log_level
}

// Program is a handler that lives in a program of the user's.
type Program struct {
	opts Options
	log  *slog.Logger

	doors    *doors
	listener net.Listener
	proc     *proc.Process
	accepts  sync.WaitGroup // the listener and every connection
	reading  sync.WaitGroup // the readers of the two connections of the program that serves

	ready     chan hello    // the first hello, with both connections in place
	broken    chan struct{} // closed when the program cannot be reached any more
	exited    chan struct{}
	stopping  chan struct{} // closed by Stop
	breakOnce sync.Once
	stopOnce  sync.Once
	stopErr   error

	mu      sync.Mutex
	closing bool // no connection is taken any more
	conns   map[*conn]bool
	control *conn // of the first hello, as is data
	data    *conn
	claimed bool
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
		opts: o, log: o.Log,
		ready:  make(chan hello, 1),
		broken: make(chan struct{}), exited: make(chan struct{}), stopping: make(chan struct{}),
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

// Start runs the program and returns when it has called start(), that is, when its model is loaded.
// When it fails, nothing of the program is left.
func (p *Program) Start(ctx context.Context) (protocol.Ready, error) {
	if err := p.launch(); err != nil {
		return protocol.Ready{}, err
	}
	select {
	case h := <-p.ready:
		return h.ready(), nil
	case <-p.exited:
		select {
		case h := <-p.ready: // it was ready once: its end is for Exited to tell
			return h.ready(), nil
		default:
		}
		_ = p.Stop(ctx) // it has ended: only its directory is left to remove
		return protocol.Ready{}, p.Err()
	case <-ctx.Done():
		text := "the program has not called start() yet"
		if !p.doors.found() {
			text = "the program has not imported runpod yet; if it should have by now: " + hides
		}
		now, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel()
		return protocol.Ready{}, errors.Join(fmt.Errorf("%s: %w", text, context.Cause(ctx)), p.Stop(now))
	}
}

func (p *Program) launch() error {
	var err error
	if p.doors, err = unpack(); err != nil {
		return err
	}
	if p.listener, err = net.Listen("unix", p.doors.socket()); err != nil {
		p.doors.remove()
		return &SetupError{err}
	}
	env := p.opts.Env
	if env == nil {
		env = os.Environ()
	}
	p.proc, err = proc.Start(proc.Options{
		Args: p.opts.Args, Dir: p.opts.Dir, Env: p.doors.environment(env, p.opts.WorkerID),
		Mark: p.doors.mark(), Stdout: p.opts.Stdout, Stderr: p.opts.Stderr,
	})
	if err != nil {
		_ = p.listener.Close()
		p.doors.remove()
		return err
	}
	p.accepts.Go(p.accept)
	go p.watch()
	return nil
}

// Limit is 1, or the number of threads, for a sync handler, and 0 for one that has proved async.
func (p *Program) Limit() int {
	if p.async.Load() {
		return 0
	}
	return max(1, p.opts.SyncThreads)
}

// Exited is closed when the program has ended by itself, or because it broke the protocol.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// Err says how the program ended: an *ExitError.
func (p *Program) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
