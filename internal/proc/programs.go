package proc

import (
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// programs are the children that this process has by its own doing. There is one such table, as there is one
// process: any other child is an orphan that came to it.
var programs = table{running: map[int]*Process{}}

type table struct {
	mu       sync.Mutex
	starting int              // programs whose numbers are not known yet
	running  map[int]*Process // those that have not been reaped, by number
	adopting bool             // orphans come to this process
}

// start enters a program while it is started. There is no moment in which it has a process that the table
// does not know of.
func (t *table) start(p *Process, start func() error) error {
	t.mu.Lock()
	t.starting++
	t.mu.Unlock()
	err := start()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.starting--
	if err == nil {
		t.running[p.Pid()] = p
	}
	return err
}

// reaped strikes a program out. Its number may have been given to another one meanwhile.
func (t *table) reaped(p *Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[p.Pid()] == p {
		delete(t.running, p.Pid())
	}
}

// all are the programs that run.
func (t *table) all() []*Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.running))
}

func (t *table) adopt(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.adopting = yes
}

func (t *table) owns(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running[pid] != nil
}

// reapOrphan reaps a child that has ended, unless it may be a program, whose exit status is somebody's.
func (t *table) reapOrphan(pid int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.starting > 0 || t.running[pid] != nil {
		return false
	}
	reaped, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
	return err == nil && reaped == pid
}

// fallsTo tells whether an orphan that started at some time can only have been left by p, as far as one can
// know: no other program that is still running is old enough to have left it.
func (t *table) fallsTo(p *Process, pid int, started uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.adopting || t.starting > 0 || t.running[pid] != nil || started < p.started {
		return false
	}
	for _, other := range t.running {
		if other != p && other.started <= started {
			return false
		}
	}
	return true
}
