package test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pidsIn reads the process ids that a program left in a file, one a line.
func pidsIn(t *testing.T, file string) (pids []int) {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for word := range strings.FieldsSeq(string(raw)) {
		pid, err := strconv.Atoi(word)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	require.NotEmpty(t, pids)
	return pids
}

// requireGone demands that processes have ended. One that nobody has reaped yet has.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		_, state, _ := strings.Cut(string(stat), ") ")
		require.True(t, strings.HasPrefix(state, "Z"), "process %d is left: %s", pid, stat)
	}
}
