package proc_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/proc"
)

func TestAlive(t *testing.T) {
	require.True(t, proc.Alive(os.Getpid()))
	child := exec.Command("true")
	require.NoError(t, child.Start())
	zombie := func() bool { return !proc.Alive(child.Process.Pid) }
	require.Eventually(t, zombie, 10*time.Second, 5*time.Millisecond, "dead, and not reaped yet")
	require.NoError(t, child.Wait())
	require.False(t, proc.Alive(child.Process.Pid))
}
