package proc

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// groupAlive reports whether a member of the group still runs. Zombies do not count: whose parent
// has gone is reaped by init, and in many containers that is nobody.
func groupAlive(pgid int) bool {
	if errors.Is(unix.Kill(-pgid, 0), unix.ESRCH) {
		return false
	}
	all := processes()
	if len(all) == 0 {
		return true // no /proc: the answer of the signal stands
	}
	return slices.ContainsFunc(all, func(e entry) bool { return e.group == pgid && !e.ended })
}

// Alive reports whether a process still runs. A zombie does not.
func Alive(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	if _, ok := inspect(unix.Getpid()); !ok {
		return true // no /proc: the answer of the signal stands
	}
	e, ok := inspect(pid)
	return ok && !e.ended
}
