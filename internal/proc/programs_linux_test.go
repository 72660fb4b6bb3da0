package proc

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Children whose ends nobody waits for yet stand still in the moment that a reaper could steal them in.
func TestReapSeen(t *testing.T) {
	dead := func(t *testing.T, cmd *exec.Cmd) {
		t.Helper()
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return !Alive(cmd.Process.Pid) }, time.Minute, time.Millisecond)
	}
	look := func(times int) {
		seen := map[identity]bool{}
		for range times {
			seen = reapSeen(seen)
		}
	}
	command := func() *exec.Cmd { return exec.Command("sh", "-c", "exit 7") }

	t.Run("a program is not reaped", func(t *testing.T) {
		p := &Process{cmd: command()}
		require.NoError(t, programs.start(p, func() error { dead(t, p.cmd); return nil }))
		look(3)
		require.ErrorContains(t, p.cmd.Wait(), "exit status 7")
		programs.reaped(p)
		require.False(t, programs.owns(p.Pid()))
	})
	t.Run("nor is one that is being started", func(t *testing.T) {
		p := &Process{cmd: command()}
		require.NoError(t, programs.start(p, func() error { dead(t, p.cmd); look(3); return nil }))
		require.ErrorContains(t, p.cmd.Wait(), "exit status 7")
		programs.reaped(p)
	})
	t.Run("a stranger is not reaped at first sight", func(t *testing.T) {
		cmd := command()
		dead(t, cmd)
		look(1)
		require.ErrorContains(t, cmd.Wait(), "exit status 7")
	})
	t.Run("but at the second", func(t *testing.T) {
		cmd := command()
		dead(t, cmd)
		look(2)
		require.ErrorContains(t, cmd.Wait(), "no child processes")
	})
}

func TestPrograms_ANumberThatIsGivenAgain(t *testing.T) {
	first := &Process{cmd: exec.Command("true")}
	require.NoError(t, programs.start(first, first.cmd.Start))
	require.NoError(t, first.cmd.Wait())
	second := &Process{cmd: first.cmd} // by the same number
	require.NoError(t, programs.start(second, func() error { return nil }))
	programs.reaped(first)
	require.True(t, programs.owns(second.Pid()))
	programs.reaped(second)
	require.False(t, programs.owns(second.Pid()))
}
