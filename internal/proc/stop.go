package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pollTime = 10 * time.Millisecond
	// reapTime bounds the wait after a KILL. A process in an uninterruptible system call, or a
	// zombie whose parent does not reap, would otherwise hold the stop for ever.
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

// Stop ends the whole group: TERM, then KILL for what is left when ctx ends. It returns when the
// program has been reaped and its group is gone.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(unix.SIGTERM); err != nil {
		return err
	}
	if p.gone(ctx) {
		return nil
	}
	if err := p.Signal(unix.SIGKILL); err != nil {
		return err
	}
	reap, cancel := context.WithTimeout(context.WithoutCancel(ctx), reapTime)
	defer cancel()
	if p.gone(reap) {
		return nil
	}
	return fmt.Errorf("process group %d is still there after a KILL", p.Pid())
}

// gone waits until the program has been reaped and no member of its group is left.
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
		if empty {
			return true
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
			return false
		}
	}
}

func groupAlive(pgid int) bool { return !errors.Is(unix.Kill(-pgid, 0), unix.ESRCH) }
