package test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
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

// What cannot be ended, as a process in a hung driver cannot, does not keep the worker. Here it is another user's, and the
// worker may not send it a signal.
func TestRunOfAProgramThatCannotBeEnded(t *testing.T) {
	t.Parallel()
	tools(t, "setpriv")
	if os.Getuid() != 0 {
		t.Skip("only root can start a process that is beyond its reach")
	}
	pidFile := filepath.Join(t.TempDir(), "pid")
	t.Cleanup(func() {
		for _, pid := range pidsIn(t, pidFile) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	args := []string{"setpriv", "--bounding-set=-kill", binary(t), "run", "--ready-timeout", "1s", "--",
		"sh", "-c", `echo $$ > "$0"; exec setpriv --reuid 65534 --regid 65534 --clear-groups sleep 600`, pidFile}
	env := append(environment(apidouble.New(t), "w1"), "RUNPOD_SKIP_FITNESS_CHECKS=true")
	p := start(t, command{args: args, env: env, dir: t.TempDir()})
	require.Equal(t, 1, p.wait(t), p.stderr)
	require.Contains(t, p.stderr.String(), "it was not ready after 1s")
	require.Contains(t, p.stderr.String(), "the handler did not stop")
}
