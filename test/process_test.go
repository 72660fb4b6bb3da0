package test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/test/proctree"
)

// patience is how long a condition may take on a busy machine. No test measures anything by it.
const patience = 30 * time.Second

// soon is the bound where a case says that something takes a second or three: that much room a busy machine needs. It is
// still far below the time that the platforms of these tests hold their answers.
const soon = 10 * time.Second

// eventually waits for a condition.
func eventually(t *testing.T, condition func() bool, what string, args ...any) {
	t.Helper()
	require.Eventuallyf(t, condition, patience, 10*time.Millisecond, what, args...)
}

// process is a running program of a test.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	gone           chan struct{}
	end            time.Time // valid once gone is closed
}

// command describes a program to start. Its environment holds nothing of the test's own but PATH.
type command struct {
	args  []string
	env   []string
	dir   string
	stdin string
	deaf  bool // nobody reads what it prints: the pipe is closed at the other end
}

// start runs a program in its own process group and ends it, and all below it, with the test.
func start(t *testing.T, c command) *process {
	t.Helper()
	p := &process{stdout: &output{}, stderr: &output{}, gone: make(chan struct{})}
	p.cmd = exec.Command(c.args[0], c.args[1:]...)
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LC_ALL=C.UTF-8"}, c.env...)
	p.cmd.Dir = c.dir
	p.cmd.Stdin = strings.NewReader(c.stdin)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	if c.deaf {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		defer w.Close()
		p.cmd.Stdout, p.cmd.Stderr = w, w
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// A grandchild that keeps the pipes open must not keep Wait from returning.
	p.cmd.WaitDelay = 5 * time.Second
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // the exit code is read from ProcessState
		p.end = time.Now()
		close(p.gone)
	}()
	t.Cleanup(func() {
		proctree.Kill(p.cmd.Process.Pid)
		<-p.gone
		if t.Failed() {
			t.Logf("%s\nstdout: %s\nstderr: %s", strings.Join(c.args, " "), tail(p.stdout), tail(p.stderr))
		}
	})
	return p
}

// runToEnd starts a program and waits for its end.
func runToEnd(t *testing.T, c command) *process {
	t.Helper()
	p := start(t, c)
	p.wait(t)
	return p
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(sig))
}

// wait returns the exit code.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	return p.waitFor(t, 2*patience)
}

func (p *process) waitFor(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.gone:
	case <-time.After(limit):
		require.Fail(t, "still running", "stderr: %s", tail(p.stderr))
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// output collects what a process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// lines are the lines that hold something.
func (o *output) lines() []string {
	var lines []string
	for line := range strings.Lines(o.String()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func tail(o *output) string {
	s := o.String()
	return s[max(0, len(s)-4000):]
}
