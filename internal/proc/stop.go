package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pollTime = 20 * time.Millisecond
	// reapTime bounds the wait after a KILL: a process in an uninterruptible system call, as a hung
	// GPU driver leaves it, would otherwise hold the stop for ever.
	reapTime = 2 * time.Second
)

// Signal sends a signal to the whole group. A group that is gone is no error.
func (p *Process) Signal(sig unix.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.empty {
		return nil
	}
	if sig == unix.SIGKILL && !p.reaped {
		p.killed = true
	}
	err := unix.Kill(-p.Pid(), sig)
	// darwin answers EPERM for a group of which only zombies are left.
	if err == nil || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) && p.reaped {
		return nil
	}
	return fmt.Errorf("send %s to process group %d: %w", unix.SignalName(sig), p.Pid(), err)
}

// Stop ends the whole group, and who left it: TERM, then KILL for what is left when ctx ends. It returns
// when the program has been reaped and its descendants are gone.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.signalAll(unix.SIGTERM); err != nil {
		return err
	}
	if p.gone(ctx) {
		return nil
	}
	if err := p.signalAll(unix.SIGKILL); err != nil {
		return err
	}
	reap, cancel := context.WithTimeout(context.WithoutCancel(ctx), reapTime)
	defer cancel()
	if p.gone(reap) {
		return nil
	}
	return fmt.Errorf("process group %d, or who left it, is still there after a KILL", p.Pid())
}

func (p *Process) signalAll(sig unix.Signal) error {
	for _, pid := range marked(p.mark, p.Pid()) {
		_ = unix.Kill(pid, sig) // it may have ended since
	}
	return p.Signal(sig)
}

// gone waits until the program has been reaped, and nobody of its group or with its mark is left.
func (p *Process) gone(ctx context.Context) bool {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return false
	}
	for {
		p.mu.Lock()
		p.empty = p.empty || !groupAlive(p.Pid())
		empty := p.empty
		p.mu.Unlock()
		if empty && len(marked(p.mark, p.Pid())) == 0 {
			return true
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
			return false
		}
	}
}
