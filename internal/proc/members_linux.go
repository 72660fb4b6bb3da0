package proc

import (
	"bytes"
	"os"
	"strconv"
)

// look finds who of the program still runs outside its group: all that descend from the group, from the mark, or from
// orphans that only this program can have left. Those that have ended and fell to this process are reaped.
func (p *Process) look() (outside []identity) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := processes()
	children := make(map[int][]entry, len(all))
	var found []entry
	for _, e := range all {
		children[e.parent] = append(children[e.parent], e)
		if p.belongs(e) {
			found = append(found, e)
		}
	}
	met := map[int]bool{os.Getpid(): true}
	for ; len(found) > 0; found = found[1:] {
		e := found[0]
		if met[e.pid] {
			continue
		}
		met[e.pid] = true
		p.known[e.identity] = true
		found = append(found, children[e.pid]...)
		switch {
		case e.ended && e.parent == os.Getpid():
			programs.reapOrphan(e.pid)
		case !e.ended && e.group != p.Pid():
			outside = append(outside, e.identity)
		}
	}
	return outside
}

// belongs tells whether a process is the program's, whoever its parent is.
func (p *Process) belongs(e entry) bool {
	return !p.empty && e.group == p.Pid() ||
		e.started >= p.started && (p.known[e.identity] || hasMark(e.pid, p.mark)) ||
		e.parent == os.Getpid() && programs.fallsTo(p, e.pid, e.started)
}

// hasMark tells whether a process was started with an entry in its environment. Who leaves the group of the program,
// as a daemon does, seldom leaves its environment too. Processes of other users cannot be looked at, and could not
// be ended.
func hasMark(pid int, mark string) bool {
	if mark == "" {
		return false
	}
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}

// startOf is when a child that has not been reaped was started.
func startOf(pid int) uint64 {
	e, _ := inspect(pid)
	return e.started
}
