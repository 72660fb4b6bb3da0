//go:build !linux

package proc

import "golang.org/x/sys/unix"

// groupAlive reports whether a member of the group still runs. A group of zombies answers EPERM.
func groupAlive(pgid int) bool { return unix.Kill(-pgid, 0) == nil }
