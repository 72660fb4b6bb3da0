package program

import (
	"errors"
	"net"
	"os"
	"slices"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/program/gateway"
	"runpodctl-worker/internal/proc"
)

// launch opens the doors and starts the program.
func (p *Program) launch() error {
	if p.env = p.opts.Env; p.env == nil {
		p.env = os.Environ()
	}
	err := p.open()
	p.spool = p.newSpooler()
	if err == nil {
		stdout, stderr := p.outputs()
		p.proc, err = proc.Start(proc.Options{
			Args: p.opts.Args, Dir: p.opts.Dir, Env: p.environment(),
			Mark: p.mark(), Stdout: stdout, Stderr: stderr,
		})
	}
	if err != nil {
		p.shut()
		p.doors.remove()
		return err
	}
	if p.listener != nil {
		p.accepts.Go(p.accept)
	}
	go p.attend()
	return nil
}

// open opens both doors, or the one that can be opened.
func (p *Program) open() error {
	if err := p.openGateway(); err != nil {
		return err
	}
	if p.opts.NoShim {
		if p.gateway == nil {
			return errors.New("without the shim a program asks $RUNPOD_WEBHOOK_GET_JOB for its jobs, which is not set")
		}
		return nil
	}
	err := p.openShim()
	if err != nil && p.gateway != nil {
		p.log.Warn("The program has to ask for its jobs with an SDK of its own.", "error", err)
		return nil
	}
	return err
}

func (p *Program) openGateway() error {
	g := gateway.New(gateway.Options{
		Lookup: func(name string) string { return lookup(p.env, name) },
		Log:    p.log, Resized: p.resize, Fault: p.fail,
	})
	if g == nil {
		return nil
	}
	err := g.Open()
	switch {
	case err == nil:
		p.gateway = g
	case p.opts.NoShim:
		return err
	default:
		p.log.Warn("The program gets its jobs only through the worker's own runpod package.", "error", err)
	}
	return nil
}

func (p *Program) openShim() error {
	doors, err := unpack(p.places)
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", doors.socket())
	if err != nil {
		doors.remove()
		return &SetupError{err}
	}
	p.doors, p.listener = doors, listener
	return nil
}

// shut closes both doors.
func (p *Program) shut() {
	if p.listener != nil {
		_ = p.listener.Close()
	}
	p.closeAll()
	p.accepts.Wait()
	if p.gateway != nil {
		p.gateway.Close()
	}
}

// environment is the program's: what it had, and the ways to both doors.
func (p *Program) environment() []string {
	env := slices.Clip(p.env)
	if p.doors != nil {
		env = p.doors.environment(env)
	}
	if p.gateway != nil {
		env = append(env, p.gateway.Environment()...)
	}
	env = append(env, "PYTHONUNBUFFERED=1")
	if p.opts.WorkerID != "" {
		env = append(env, config.PodID+"="+p.opts.WorkerID)
	}
	return env
}

// mark is the entry of the environment that nobody but the program and its descendants has.
func (p *Program) mark() string {
	if p.doors != nil {
		return p.doors.mark()
	}
	return p.gateway.Mark()
}
