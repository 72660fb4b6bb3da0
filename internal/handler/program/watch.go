package program

import (
	"context"
	"errors"
	"time"

	"runpodctl-worker/internal/mistake"
	"runpodctl-worker/internal/proc"
)

const (
	lingerTime = 5 * time.Second        // a program may tidy up after start() returned
	scriptTime = time.Second            // a start script may end by itself when its Python process has died
	pollTime   = 20 * time.Millisecond  // between two looks whether that process is there
	drainTime  = 200 * time.Millisecond // frames that were written before the program ended
)

// attend notes the end of the program, whatever ended it.
func (p *Program) attend() {
	defer close(p.exited)
	if err := mistake.Catch(p.watch); err != nil {
		p.log.Error("The handler's program is given up.", "error", err)
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
	}
}

// watch waits for the end of the program, and notes how it was.
func (p *Program) watch() {
	select {
	case <-p.proc.Exited():
	case <-p.broken:
		p.end()
	}
	p.drain()
	for _, o := range p.streams {
		o.Flush()
	}
	if p.gateway != nil {
		p.gateway.Close()
	}
	p.note()
	if p.leaves() {
		select { // nobody misses it yet
		case <-p.stopping:
		case <-p.missed:
		}
	}
}

func (p *Program) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = p.reason()
}

// leaves reports whether the program has ended as it said that it would: its SDK asked for a fresh worker, and exits
// when the result that says so is delivered. The worker comes to the same end by that result.
func (p *Program) leaves() bool {
	if p.gateway == nil || !p.gateway.Leaves() {
		return false
	}
	select {
	case <-p.proc.Exited():
		state := p.proc.State()
		return state.Code == 0 && state.Signal == 0 && state.Err == nil
	default:
		return false
	}
}

// end waits for a program that cannot be reached any more, and helps it when it takes too long.
func (p *Program) end() {
	why := p.linger()
	if why == nil {
		select {
		case <-p.proc.Exited():
		case <-p.stuck:
		}
		return
	}
	p.fail(why)
	ctx, cancel := context.WithTimeout(context.Background(), lingerTime)
	defer cancel()
	if err := p.proc.Stop(ctx); err != nil {
		p.log.Error("The program could not be ended.", "error", err)
		return
	}
	<-p.proc.Exited()
}

// linger waits for the program to end by itself, or by a Stop. Else it returns why it has to be ended.
func (p *Program) linger() error {
	select {
	case <-p.stopping:
		return nil // the Stop sees to it
	default:
	}
	p.mu.Lock()
	fault, pid := p.fault, p.pid
	p.mu.Unlock()
	why, wait := errors.New("it stopped to take jobs and went on running"), lingerTime
	if fault != nil {
		if _, leaving := errors.AsType[*UnhealthyError](fault); !leaving {
			return fault
		}
		why, wait = fault, scriptTime
	}
	end := time.NewTimer(wait)
	defer end.Stop()
	look := time.NewTicker(pollTime)
	defer look.Stop()
	if pid == p.proc.Pid() || pid == 0 {
		look.Stop() // its end is the program's, or no process is known
	}
	for {
		select {
		case <-p.proc.Exited():
			return nil
		case <-p.stopping:
			return nil
		case <-end.C:
			return why
		case <-look.C:
			if !proc.Alive(pid) {
				why = errors.New("the Python process that took the jobs is gone")
				end.Reset(scriptTime)
				look.Stop()
			}
		}
	}
}

// drain reads what the program had written when it ended, then lets its readers go.
func (p *Program) drain() {
	p.mu.Lock()
	p.closing = true
	for c := range p.conns {
		_ = c.SetReadDeadline(time.Now().Add(drainTime)) // fails only on a closed connection
	}
	p.mu.Unlock()
	p.reading.Wait()
}
