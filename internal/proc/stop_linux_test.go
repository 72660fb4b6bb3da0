package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/proc"
)

// stubborn is a script that only a KILL ends.
const stubborn = `trap "" TERM; sleep 300 & wait; sleep 300`

// leave starts a process in a session of its own, without the program's output, and lasts. The parent of an orphan has
// ended by then.
func leave(orphan bool, env []string) {
	script := stubborn
	if orphan {
		script = `sh -c '` + stubborn + `' >/dev/null 2>&1 & echo $!`
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setsid: true}
	if orphan {
		out, err := cmd.Output()
		must(err)
		fmt.Print(string(out))
	} else {
		must(cmd.Start())
		fmt.Println(cmd.Process.Pid)
	}
	fmt.Println("all left")
	time.Sleep(time.Minute)
}

func init() {
	platformModes["leave an orphan without a trace"] = func() { leave(true, []string{}) }
	platformModes["leave a daemon without a trace"] = func() { leave(false, []string{}) }
	platformModes["leave an orphan"] = func() { leave(true, nil) }
	platformModes["stubborn with a stubborn grandchild"] = func() {
		signal.Ignore(syscall.SIGTERM)
		cmd := exec.Command("sh", "-c", `sh -c '`+stubborn+`' & echo $!; echo $$; echo all left; `+stubborn)
		cmd.Stdout = os.Stdout
		must(cmd.Run())
	}
	platformModes["own group"] = func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGINT)
		out := &buffer{}
		p, err := proc.Start(proc.Options{Args: []string{"sh", "-c", `trap "echo interrupted" INT; trap "echo told; exit" USR1; echo ready; while :; do sleep 0.05; done`}, Stdout: out})
		must(err)
		for !strings.Contains(out.String(), "ready\n") {
			time.Sleep(5 * time.Millisecond)
		}
		must(syscall.Kill(0, syscall.SIGINT)) // what the key does: the signal is for the group in the foreground
		<-c
		must(p.Signal(syscall.SIGUSR1))
		<-p.Exited()
		fmt.Print(out.String())
	}
}

// past is a time limit that is over.
func past() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func leaving(t *testing.T, mode string, count int) (*proc.Process, []int) {
	t.Helper()
	p, out := start(t, mode)
	out.wait(t, "all left\n")
	left := pids(out.String())
	require.Len(t, left, count)
	for _, pid := range left {
		require.True(t, proc.Alive(pid))
	}
	return p, left
}

func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.False(t, proc.Alive(pid))
	}
}

// Without a parent that leads to it, and without an Adopt, only its environment tells whose it is.
func TestStop_EndsAMarkedOrphan(t *testing.T) {
	p, left := leaving(t, "leave an orphan", 1)
	require.NoError(t, p.Stop(within(t, 200*time.Millisecond)))
	requireGone(t, left)
}

// SR-05
func TestStop_EndsWhatIgnoresIt(t *testing.T) {
	p, left := leaving(t, "stubborn with a stubborn grandchild", 2)
	require.NoError(t, p.Stop(within(t, 200*time.Millisecond)))
	requireGone(t, left)
}

func TestStop_EndsWhoLeftNoTrace(t *testing.T) {
	t.Run("below the program", func(t *testing.T) {
		p, left := leaving(t, "leave a daemon without a trace", 1)
		require.NoError(t, p.Stop(within(t, 200*time.Millisecond)))
		requireGone(t, left)
	})
	t.Run("below this process", func(t *testing.T) {
		stop, err := proc.Adopt()
		require.NoError(t, err)
		defer stop()
		p, left := leaving(t, "leave an orphan without a trace", 1)
		require.NoError(t, p.Stop(within(t, 200*time.Millisecond)))
		requireGone(t, left)
		require.False(t, listed(left[0]), "it is no zombie either")
	})
	t.Run("after the program itself", func(t *testing.T) {
		stop, err := proc.Adopt()
		require.NoError(t, err)
		defer stop()
		p, left := leaving(t, "leave an orphan without a trace", 1)
		require.NoError(t, syscall.Kill(p.Pid(), syscall.SIGKILL))
		<-p.Exited()
		require.True(t, proc.Alive(left[0]))
		require.NoError(t, p.Stop(past()))
		requireGone(t, left)
	})
	t.Run("but nobody of another program", func(t *testing.T) {
		stop, err := proc.Adopt()
		require.NoError(t, err)
		defer stop()
		older, first := leaving(t, "leave an orphan without a trace", 1)
		younger, second := leaving(t, "leave an orphan without a trace", 1)
		require.NoError(t, younger.Stop(past()))
		require.True(t, proc.Alive(first[0]))
		require.True(t, proc.Alive(second[0]), "it may be the older program's")
		require.NoError(t, older.Stop(past()))
		requireGone(t, append(first, second...))
	})
}

// The program hears of a Ctrl-C on the terminal only what it is told.
func TestStart_InAGroupOfItsOwn(t *testing.T) {
	cmd := exec.CommandContext(within(t, time.Minute), os.Args[0])
	cmd.Env = append(os.Environ(), modeVariable+"=own group", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the signal does not reach this test
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "ready\ntold\n", string(out))
}
