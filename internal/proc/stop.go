package proc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// The time between two looks at what is left grows between these: one costs a walk through the process table.
	firstLook   = 5 * time.Millisecond
	longestLook = 100 * time.Millisecond
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
	gone, err := p.end(ctx, unix.SIGTERM)
	if gone || err != nil {
		return err
	}
	reap, cancel := context.WithTimeout(context.WithoutCancel(ctx), reapTime)
	defer cancel()
	gone, err = p.end(reap, unix.SIGKILL)
	if gone || err != nil {
		return err
	}
	return fmt.Errorf("process group %d, or who left it, is still there after a KILL", p.Pid())
}

// Kill is Stop without time to tidy up. The error tells that it is still there: a process that hangs inside a driver can
// be beyond any signal. It is then left to the kernel.
func (p *Process) Kill() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	return p.Stop(now)
}

// Finish waits until the program has ended by itself, and ends it when ctx does, without time to tidy up; the error
// is the cause of that then. Nothing that the program left behind goes on.
func (p *Process) Finish(ctx context.Context) error {
	var overdue error
	select {
	case <-p.exited:
	case <-ctx.Done():
		overdue = context.Cause(ctx)
	}
	return errors.Join(overdue, p.Kill())
}

// end sends a signal to everything of the program's, also to what comes to light only when its parent has ended, and
// waits until nothing is left.
func (p *Process) end(ctx context.Context, sig unix.Signal) (gone bool, err error) {
	outside := p.look() // before the signal cuts the links between them
	if err := p.Signal(sig); err != nil {
		return false, err
	}
	told := map[identity]bool{}
	exited := p.exited // nil once it has been seen closed
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		for _, id := range outside {
			if !told[id] {
				told[id] = true
				_ = unix.Kill(id.pid, sig) // it may have ended since
			}
		}
		if exited == nil && len(outside) == 0 && p.groupGone() {
			return true, nil
		}
		select {
		case <-exited:
			exited, pause = nil, firstLook/2
		case <-time.After(pause):
		case <-ctx.Done():
			return false, nil
		}
		outside = p.look()
	}
}

func (p *Process) groupGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.empty = p.empty || !groupAlive(p.Pid())
	return p.empty
}

// KillAll kills all programs that run, and who left their groups, without waiting for their end.
func KillAll() {
	for _, p := range programs.all() {
		outside := p.look()
		_ = p.Signal(unix.SIGKILL) // what cannot be killed cannot be helped
		for _, id := range outside {
			_ = unix.Kill(id.pid, unix.SIGKILL)
		}
	}
}
