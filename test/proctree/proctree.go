// Package proctree looks at a process and everything below it through /proc.
package proctree

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Descendants lists the processes below pid, without pid itself.
func Descendants(pid int) []int {
	children := map[int][]int{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil { // it has ended meanwhile
			continue
		}
		if child, parent, ok := parents(raw); ok {
			children[parent] = append(children[parent], child)
		}
	}
	var below []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		below = append(below, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return below
}

// parents reads pid and parent out of a stat line, whose second field may hold spaces and brackets.
func parents(stat []byte) (pid, parent int, ok bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 0 || end < open {
		return 0, 0, false
	}
	rest := strings.Fields(string(stat[end+1:]))
	if len(rest) < 2 {
		return 0, 0, false
	}
	pid, errPid := strconv.Atoi(strings.TrimSpace(string(stat[:open])))
	parent, errParent := strconv.Atoi(rest[1])
	return pid, parent, errPid == nil && errParent == nil
}

// Kill ends the processes that are below pid now, then pid.
func Kill(pid int) {
	for _, child := range append(Descendants(pid), pid) {
		// An error means that it is gone already.
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
}

// Memory is what a tree of processes holds, in bytes.
type Memory struct {
	RSS, PSS  int64 // PSS counts a shared page once for all that share it
	Processes int
}

// Alone measures one process without those below it.
func Alone(pid int) (Memory, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return Memory{}, err
	}
	return Memory{RSS: field(raw, "Rss:"), PSS: field(raw, "Pss:"), Processes: 1}, nil
}

// Peak is the most that a process has held at any time, as RSS.
func Peak(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return field(raw, "VmHWM:"), nil
}

// Measure adds up the memory of pid and all below it.
func Measure(pid int) (Memory, error) {
	sum, err := Alone(pid)
	if err != nil {
		return Memory{}, err
	}
	for _, child := range Descendants(pid) {
		if m, err := Alone(child); err == nil { // else it has ended meanwhile
			sum.RSS += m.RSS
			sum.PSS += m.PSS
			sum.Processes++
		}
	}
	return sum, nil
}

// field is a size in a file of /proc.
func field(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}
