package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// identity names a process for good: its number alone is given out again.
type identity struct {
	pid     int
	started uint64 // ticks since the machine was booted
}

// entry is what the process table says about a process.
type entry struct {
	identity
	parent, group int
	ended         bool // nothing of it runs; it waits to be reaped
}

// processes is a look at the process table. It is empty where there is no /proc.
func processes() []entry {
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	all := make([]entry, 0, len(names))
	for _, name := range names {
		if e, ok := readStat(name); ok {
			all = append(all, e)
		}
	}
	return all
}

// inspect looks at one process. There is none if it has ended and been reaped.
func inspect(pid int) (entry, bool) { return readStat("/proc/" + strconv.Itoa(pid) + "/stat") }

func readStat(name string) (entry, bool) {
	stat, err := os.ReadFile(name) //nolint:gosec // a file of /proc
	if err != nil {
		return entry{}, false // it has just ended
	}
	return parseStat(stat)
}

// Where parseStat finds what it looks for, behind the name of the process.
const (
	statState   = 0
	statParent  = 1
	statGroup   = 2
	statStarted = 19
)

// parseStat reads "pid (name) state parent group …": the name may hold anything, also parentheses.
func parseStat(stat []byte) (entry, bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return entry{}, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) <= statStarted {
		return entry{}, false
	}
	pid, errPid := strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	parent, errParent := strconv.Atoi(string(fields[statParent]))
	group, errGroup := strconv.Atoi(string(fields[statGroup]))
	started, errStarted := strconv.ParseUint(string(fields[statStarted]), 10, 64)
	if errPid != nil || errParent != nil || errGroup != nil || errStarted != nil {
		return entry{}, false
	}
	state := fields[statState][0]
	return entry{identity{pid, started}, parent, group, state == 'Z' || state == 'X'}, true
}
