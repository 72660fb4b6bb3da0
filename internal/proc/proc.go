// Package proc runs a child program as a process group of its own.
package proc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// drainTime is how long output may still arrive after the program has ended. A grandchild that
// inherited the pipe could otherwise keep the end of the program from being noticed for ever.
const drainTime = 500 * time.Millisecond

// Options say what to run.
type Options struct {
	Args   []string  // the command; its first word is looked up in PATH
	Env    []string  // nil: the environment of this process
	Dir    string    // empty: the working directory of this process
	Mark   string    // an entry of Env that is this program's alone: a Stop also ends who has it and left the group
	Stdin  *os.File  // nil: empty
	Stdout io.Writer // nil: discarded, as with Stderr; both are written as bytes arrive
	Stderr io.Writer
	Files  []*os.File // passed on as the descriptors 3, 4 and so on; the caller closes its own
}

// Process is a running program, the leader of its own process group.
//
// It is not tied to the life of its parent by a parent-death signal: on Linux that signal follows
// the thread that forked, not the process, and the Go runtime ends threads at will.
type Process struct {
	cmd    *exec.Cmd
	mark   string
	tail   tail
	exited chan struct{}

	started uint64 // when, on the clock of the process table; 0 where that has none

	mu     sync.Mutex // orders signals against the reaping of the group's leader
	state  State      // final once exited is closed
	reaped bool
	empty  bool // no member of the group was left when its leader had been reaped
	killed bool
	// mistake is why nobody reads the program's output any more.
	mistake error
	// known are all processes that were once seen to be the program's: what leads to one is lost when its parent ends.
	known map[identity]bool
}

// Start starts the program.
func Start(o Options) (*Process, error) {
	if len(o.Args) == 0 {
		return nil, errors.New("no command to run")
	}
	p := &Process{mark: o.Mark, exited: make(chan struct{}), known: map[identity]bool{}}
	p.cmd = exec.Command(o.Args[0], o.Args[1:]...) //nolint:forbidigo // the one place; all others come here
	p.cmd.Env, p.cmd.Dir, p.cmd.ExtraFiles = o.Env, o.Dir, o.Files
	if o.Stdin != nil { // a nil *os.File in the interface would not be nil
		p.cmd.Stdin = o.Stdin
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	out, outChild, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for stdout: %w", err)
	}
	errs, errsChild, err := os.Pipe()
	if err != nil {
		closeAll(out, outChild)
		return nil, fmt.Errorf("pipe for stderr: %w", err)
	}
	p.cmd.Stdout, p.cmd.Stderr = outChild, errsChild
	err = programs.start(p, func() error {
		if err := p.cmd.Start(); err != nil {
			return err
		}
		p.started = startOf(p.Pid()) // nobody can have reaped it yet
		return nil
	})
	closeAll(outChild, errsChild)
	if err != nil {
		closeAll(out, errs)
		return nil, fmt.Errorf("start %s: %w", o.Args[0], err)
	}

	var copying sync.WaitGroup
	copying.Go(func() { p.pass(out, o.Stdout) })
	copying.Go(func() { p.pass(errs, o.Stderr) })
	go p.wait(&copying, out, errs)
	return p, nil
}

// wait reaps the leader, then gives the rest of the output a moment to arrive.
func (p *Process) wait(copying *sync.WaitGroup, pipes ...*os.File) {
	err := p.cmd.Wait()
	programs.reaped(p)
	p.mu.Lock()
	p.reaped = true
	p.empty = !groupAlive(p.cmd.Process.Pid)
	p.state = newState(p.cmd.ProcessState, cmp.Or(p.mistake, err), p.killed)
	p.mu.Unlock()

	copied := make(chan struct{})
	go func() { copying.Wait(); close(copied) }()
	select {
	case <-copied:
	case <-time.After(drainTime): // or somebody does not read what is passed on to him
	}
	closeAll(pipes...)
	close(p.exited)
}

// Pid is the process id of the program, and the id of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the program has ended and its output has been passed on.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State says how the program ended. It is meaningful once Exited is closed.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Tail is the end of the program's output, stdout and stderr together, as it arrived.
func (p *Process) Tail() []string { return p.tail.lines() }

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // pipe ends: closing them twice is harmless
	}
}
