//go:build !linux

package proc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// groupAlive reports whether a member of the group still runs. A group of zombies answers EPERM.
func groupAlive(pgid int) bool { return unix.Kill(-pgid, 0) == nil }

// Alive reports whether a process still runs.
func Alive(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
