package proctree

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of the kernel's accounts, the same on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// CPU is the processor time, user and system, of pid and all that are below it now. What has ended does not count.
func CPU(pid int) time.Duration {
	var sum time.Duration
	for _, p := range append(Descendants(pid), pid) {
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p)); err == nil { // else it has ended meanwhile
			sum += used(raw)
		}
	}
	return sum
}

// used reads the two times out of a stat line, the 12th and the 13th field behind the name.
func used(stat []byte) time.Duration {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}
