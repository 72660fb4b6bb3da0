package proc_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"runpodctl-worker/internal/proc"
)

const modeVariable = "PROC_TEST_MODE"

// The test binary is its own helper program: a mode in the environment says what it does.
func TestMain(m *testing.M) {
	if mode, ok := os.LookupEnv(modeVariable); ok {
		helper(mode)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func helper(mode string) {
	switch mode {
	case "exit 3":
		fmt.Fprintln(os.Stderr, "going")
		os.Exit(3)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "terminate itself":
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		select {}
	case "progress":
		for i := range 3 {
			fmt.Printf("\r%d%%", i)
			time.Sleep(50 * time.Millisecond)
		}
		select {}
	case "output":
		fmt.Print(strings.Repeat("x", 200_000), "\n", "no newline at the end")
	case "copy to descriptor 3":
		_, _ = io.Copy(os.NewFile(3, "report"), os.Stdin)
	case "environment":
		wd, _ := os.Getwd()
		fmt.Print(os.Getenv("GIVEN"), " ", wd)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		select {}
	case "slow to stop":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		time.Sleep(100 * time.Millisecond)
		fmt.Println("tidied up")
	case "leave a child", "leave a stubborn child":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), modeVariable+"="+map[bool]string{true: "sleep", false: "stubborn"}[mode == "leave a child"])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println("child", child.Process.Pid)
		if mode == "leave a stubborn child" {
			time.Sleep(200 * time.Millisecond)
		}
	case "leave daemons":
		for _, mode := range []string{"sleep", "stubborn"} {
			daemon := exec.Command(os.Args[0])
			daemon.Env = append(os.Environ(), modeVariable+"="+mode)
			daemon.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			daemon.Stdout = os.Stdout
			if err := daemon.Start(); err != nil {
				panic(err)
			}
			fmt.Println("daemon", daemon.Process.Pid)
		}
		fmt.Println("all left")
		time.Sleep(time.Minute)
	case "sleep":
		time.Sleep(time.Minute)
	default:
		if run := platformModes[mode]; run != nil {
			run()
		}
	}
}

// platformModes are the modes that not every system has.
var platformModes = map[string]func(){}

// buffer is written by a process and read by a test.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (b *buffer) wait(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(b.String(), text) }, 10*time.Second, 5*time.Millisecond)
}

func start(t *testing.T, mode string) (*proc.Process, *buffer) {
	t.Helper()
	out := &buffer{}
	mark := "PROC_TEST_MARK=" + rand.Text()
	p, err := proc.Start(proc.Options{
		Args: []string{os.Args[0]}, Env: append(os.Environ(), modeVariable+"="+mode, "GORACE=atexit_sleep_ms=0", mark),
		Mark: mark, Stdout: out, Stderr: out,
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Stop(within(t, 0)) })
	return p, out
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestState(t *testing.T) {
	for _, tt := range []struct {
		mode, text string
		code       int
		signal     syscall.Signal
	}{
		{"none", "exit code 0", 0, 0},
		{"exit 3", "exit code 3", 3, 0},
		{"die", "killed by SIGKILL, likely out of memory", -1, syscall.SIGKILL},
		{"terminate itself", "killed by SIGTERM", -1, syscall.SIGTERM},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			p, _ := start(t, tt.mode)
			<-p.Exited()
			require.Equal(t, tt.text, p.State().String())
			require.Equal(t, tt.code, p.State().Code)
			require.Equal(t, tt.signal, p.State().Signal)
		})
	}
	t.Run("of a shell's command", func(t *testing.T) {
		p, err := proc.Start(proc.Options{Args: []string{"sh", "-c", "(kill -9 $$); sh -c 'kill -9 $$'; exit $?"}})
		require.NoError(t, err)
		<-p.Exited()
		require.Contains(t, p.State().String(), "SIGKILL, likely out of memory")
		require.NoError(t, p.Stop(within(t, time.Second)))
	})
}

func TestStartFails(t *testing.T) {
	_, err := proc.Start(proc.Options{})
	require.ErrorContains(t, err, "no command")
	_, err = proc.Start(proc.Options{Args: []string{"/nowhere/program"}})
	require.ErrorContains(t, err, "start /nowhere/program")
}

func TestOutput(t *testing.T) {
	t.Run("long lines and the last one", func(t *testing.T) {
		p, out := start(t, "output")
		<-p.Exited()
		require.Len(t, out.String(), 200_000+1+len("no newline at the end"))
		require.Equal(t, []string{strings.Repeat("x", 1024), "no newline at the end"}, p.Tail())
	})
	t.Run("as it comes", func(t *testing.T) {
		p, out := start(t, "progress")
		out.wait(t, "\r0%\r1%\r2%")
		require.Equal(t, []string{"2%"}, p.Tail())
		require.NoError(t, p.Stop(within(t, 5*time.Second)))
	})
	t.Run("to a writer that fails", func(t *testing.T) {
		p, err := proc.Start(proc.Options{
			Args: []string{os.Args[0]}, Env: append(os.Environ(), modeVariable+"=output"), Stdout: failing{},
		})
		require.NoError(t, err)
		<-p.Exited()
		require.Equal(t, 0, p.State().Code)
		require.NoError(t, p.Stop(within(t, time.Second)))
	})
	t.Run("to a writer that nobody reads", func(t *testing.T) {
		stuck := make(blocking)
		defer close(stuck)
		p, err := proc.Start(proc.Options{
			Args: []string{os.Args[0]}, Env: append(os.Environ(), modeVariable+"=output"), Stdout: stuck,
		})
		require.NoError(t, err)
		require.NoError(t, p.Stop(within(t, 0)))
		<-p.Exited()
	})
	t.Run("to a file of its own", func(t *testing.T) {
		in, feed, err := os.Pipe()
		require.NoError(t, err)
		report, write, err := os.Pipe()
		require.NoError(t, err)
		defer report.Close()
		p, err := proc.Start(proc.Options{
			Args: []string{os.Args[0]}, Env: append(os.Environ(), modeVariable+"=copy to descriptor 3"),
			Stdin: in, Files: []*os.File{write},
		})
		in.Close()
		write.Close()
		require.NoError(t, err)
		_, err = feed.WriteString("through stdin")
		require.NoError(t, err)
		feed.Close()
		text, err := io.ReadAll(report)
		require.NoError(t, err)
		require.Equal(t, "through stdin", string(text))
		require.NoError(t, p.Stop(within(t, time.Second)))
	})
	t.Run("environment and directory", func(t *testing.T) {
		out, dir := &buffer{}, t.TempDir()
		p, err := proc.Start(proc.Options{
			Args: []string{os.Args[0]}, Env: []string{modeVariable + "=environment", "GIVEN=value"}, Dir: dir, Stdout: out,
		})
		require.NoError(t, err)
		<-p.Exited()
		require.Equal(t, "value "+dir, out.String())
		require.NoError(t, p.Stop(within(t, time.Second)))
	})
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

type blocking chan struct{}

func (b blocking) Write(p []byte) (int, error) { <-b; return len(p), nil }

func TestStop(t *testing.T) {
	t.Run("lets it tidy up", func(t *testing.T) {
		p, out := start(t, "slow to stop")
		out.wait(t, "ready")
		require.NoError(t, p.Stop(within(t, 10*time.Second)))
		require.Contains(t, out.String(), "tidied up")
		require.Equal(t, 0, p.State().Code)
	})
	t.Run("kills what stays", func(t *testing.T) {
		p, out := start(t, "stubborn")
		out.wait(t, "ready")
		require.NoError(t, p.Stop(within(t, 100*time.Millisecond)))
		require.Equal(t, "killed by SIGKILL since it did not stop in time", p.State().String())
	})
	t.Run("ends the whole group", func(t *testing.T) {
		for _, mode := range []string{"leave a child", "leave a stubborn child"} {
			p, out := start(t, mode)
			<-p.Exited() // although the child holds the pipes
			require.Equal(t, 0, p.State().Code)
			require.NoError(t, p.Stop(within(t, 300*time.Millisecond)))
			var pid int
			_, err := fmt.Sscanf(out.String()[strings.Index(out.String(), "child"):], "child %d", &pid)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, 5*time.Second, 10*time.Millisecond)
		}
	})
	t.Run("ends who left the group", func(t *testing.T) {
		if _, err := os.Stat("/proc/self/environ"); err != nil {
			t.Skip("only Linux shows the environment of a process")
		}
		run := func(mark string) (*proc.Process, []int) {
			out := &buffer{}
			p, err := proc.Start(proc.Options{
				Args: []string{os.Args[0]}, Stdout: out, Mark: mark,
				Env: append(os.Environ(), modeVariable+"=leave daemons", "GORACE=atexit_sleep_ms=0", mark),
			})
			require.NoError(t, err)
			out.wait(t, "ready") // of the second one
			out.wait(t, "all left")
			var pids []int
			for line := range strings.Lines(out.String()) {
				var pid int
				if n, _ := fmt.Sscanf(line, "daemon %d", &pid); n == 1 {
					pids = append(pids, pid)
				}
			}
			require.Len(t, pids, 2)
			return p, pids
		}
		p, daemons := run("PROC_TEST_MARK=1")
		other, others := run("PROC_TEST_MARK=11")
		require.NoError(t, p.Stop(within(t, 300*time.Millisecond)))
		for i := range daemons {
			require.False(t, proc.Alive(daemons[i]))
			require.True(t, proc.Alive(others[i]), "of another program")
		}
		require.NoError(t, other.Stop(within(t, 0)))
		for _, pid := range others {
			require.False(t, proc.Alive(pid))
		}
	})
	t.Run("twice and late", func(t *testing.T) {
		p, _ := start(t, "none")
		<-p.Exited()
		require.NoError(t, p.Stop(within(t, time.Second)))
		require.NoError(t, p.Stop(within(t, time.Second)))
		require.NoError(t, p.Signal(syscall.SIGTERM))
	})
}

func TestFinish(t *testing.T) {
	t.Run("waits for the program", func(t *testing.T) {
		p, _ := start(t, "exit 3")
		require.NoError(t, p.Finish(t.Context()))
		require.Equal(t, "exit code 3", p.State().String())
	})
	t.Run("ends what it left", func(t *testing.T) {
		p, out := start(t, "leave a stubborn child")
		require.NoError(t, p.Finish(t.Context()))
		var pid int
		_, err := fmt.Sscanf(out.String()[strings.Index(out.String(), "child"):], "child %d", &pid)
		require.NoError(t, err)
		require.False(t, proc.Alive(pid))
	})
	t.Run("not for ever", func(t *testing.T) {
		p, out := start(t, "stubborn")
		out.wait(t, "ready")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(os.ErrDeadlineExceeded)
		require.ErrorIs(t, p.Finish(ctx), os.ErrDeadlineExceeded)
		require.Equal(t, syscall.SIGKILL, p.State().Signal)
	})
}
