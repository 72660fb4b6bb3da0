package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// groupAlive reports whether a member of the group still runs. Zombies do not count: whose parent
// has gone is reaped by init, and in many containers that is nobody.
func groupAlive(pgid int) bool {
	if errors.Is(unix.Kill(-pgid, 0), unix.ESRCH) {
		return false
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return true // no /proc: the answer of the signal stands
	}
	want := []byte(strconv.Itoa(pgid))
	for _, name := range stats {
		if group, runs := readStat(name); runs && bytes.Equal(group, want) {
			return true
		}
	}
	return false
}

// Alive reports whether a process still runs. A zombie does not.
func Alive(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return true // no /proc: the answer of the signal stands
	}
	_, runs := readStat("/proc/" + strconv.Itoa(pid) + "/stat")
	return runs
}

// readStat says which group a process belongs to, and whether it runs.
func readStat(name string) (group []byte, runs bool) {
	stat, err := os.ReadFile(name) //nolint:gosec // a file of /proc
	if err != nil {
		return nil, false // it has just ended
	}
	// pid (name) state ppid pgrp …: the name may hold anything, also parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return nil, false
	}
	return fields[2], fields[0][0] != 'Z' && fields[0][0] != 'X'
}
