package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// marked lists the running processes outside a group that were started with an entry in their environment.
// Who leaves the group of the program, as a daemon does, seldom leaves its environment too. Processes of
// other users cannot be looked at, and could not be ended.
func marked(entry string, pgid int) []int {
	if entry == "" {
		return nil
	}
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	want, group := []byte(entry), []byte(strconv.Itoa(pgid))
	var pids []int
	for _, name := range names {
		environ, err := os.ReadFile(name) //nolint:gosec // a file of /proc
		if err != nil || !contains(environ, want) {
			continue
		}
		dir := filepath.Dir(name)
		of, runs := readStat(dir + "/stat")
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && runs && pid != os.Getpid() && !bytes.Equal(of, group) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func contains(environ, want []byte) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}
