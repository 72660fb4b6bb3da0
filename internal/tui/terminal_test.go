package tui

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

// patience is for a machine that is busy, not for us.
const patience = time.Minute

// terminal is a pseudo terminal with a program in it.
type terminal struct {
	t     *testing.T
	pty   *os.File // our end
	tty   *os.File // the program's; kept open, so that its modes can be read after the program's end
	cmd   *exec.Cmd
	modes *term.State // before the program started

	mu      sync.Mutex
	out     strings.Builder
	changed chan struct{} // closed and replaced as output comes
	drained chan struct{}
}

func openTerminal(t *testing.T, cols, rows uint16) *terminal {
	t.Helper()
	ours, theirs, err := pty.Open()
	require.NoError(t, err)
	x := &terminal{t: t, pty: ours, tty: theirs, changed: make(chan struct{}), drained: make(chan struct{})}
	x.resize(cols, rows)
	x.modes, err = term.GetState(int(theirs.Fd()))
	require.NoError(t, err)
	go x.read()
	t.Cleanup(func() {
		theirs.Close()
		<-x.drained // our end reads an error once theirs is closed
		ours.Close()
	})
	return x
}

// startProgram starts a program of program_test.go.
func startProgram(t *testing.T, name string, env ...string) *terminal {
	t.Helper()
	x := openTerminal(t, 80, 24)
	self, err := os.Executable()
	require.NoError(t, err)
	x.start(self, append(env, programEnv+"="+name)...)
	return x
}

func (x *terminal) start(path string, env ...string) {
	x.t.Helper()
	x.cmd = exec.Command(path)
	x.cmd.Dir = x.t.TempDir()
	x.cmd.Env = append([]string{"TERM=xterm-256color", "LANG=C.UTF-8"}, env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = x.tty, x.tty, x.tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // as a shell's child has it
	require.NoError(x.t, x.cmd.Start())
	x.t.Cleanup(func() {
		if x.cmd.ProcessState == nil {
			_ = x.cmd.Process.Kill()
			_ = x.cmd.Wait()
		}
	})
}

func (x *terminal) read() {
	defer close(x.drained)
	buf := make([]byte, 4096)
	for {
		n, err := x.pty.Read(buf)
		x.mu.Lock()
		x.out.Write(buf[:n])
		close(x.changed)
		x.changed = make(chan struct{})
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) output() (string, <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String(), x.changed
}

// await waits until the program has written something, after what was there at the mark, and returns a new mark.
func (x *terminal) await(mark int, want string) int {
	x.t.Helper()
	limit := time.After(patience)
	for {
		out, changed := x.output()
		if strings.Contains(ansi.Strip(out[mark:]), want) {
			return len(out)
		}
		select {
		case <-changed:
		case <-limit:
			require.Failf(x.t, "not on the screen", "%q is not in %q", want, ansi.Strip(out[mark:]))
		}
	}
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	_, err := x.pty.WriteString(keys)
	require.NoError(x.t, err)
}

func (x *terminal) resize(cols, rows uint16) {
	x.t.Helper()
	require.NoError(x.t, pty.Setsize(x.pty, &pty.Winsize{Cols: cols, Rows: rows}))
}

// end waits for the program's end and returns its exit code and all that it wrote.
func (x *terminal) end() (int, string) {
	x.t.Helper()
	x.wait()
	_, err := x.tty.WriteString(lastLine) // what was written before it has come by then
	require.NoError(x.t, err)
	x.await(0, lastLine)
	out, _ := x.output()
	return x.cmd.ProcessState.ExitCode(), out
}

func (x *terminal) wait() {
	x.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- x.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(patience):
		_ = x.cmd.Process.Kill()
		<-ended
		require.Fail(x.t, "the program does not end")
	}
}

// leave closes our end, as a terminal's window that is closed.
func (x *terminal) leave() {
	x.t.Helper()
	require.NoError(x.t, x.pty.Close())
	_, _ = x.tty.WriteString("read on") // where our reader waits, it lets go of what is closed only now
}

const lastLine = "<end of output>"

// requireRestored requires that the program left the terminal as it was.
func (x *terminal) requireRestored(out string) {
	x.t.Helper()
	modes, err := term.GetState(int(x.tty.Fd()))
	require.NoError(x.t, err)
	require.Equal(x.t, x.modes, modes, "terminal modes")
	require.Equal(x.t, strings.Count(out, ansi.SetModeAltScreenSaveCursor), strings.Count(out, ansi.ResetModeAltScreenSaveCursor), "alternate screen")
	require.Contains(x.t, out, ansi.ResetModeAltScreenSaveCursor)
	require.Greater(x.t, strings.LastIndex(out, ansi.ShowCursor), strings.LastIndex(out, ansi.HideCursor), "the cursor is hidden")
	require.Greater(x.t, strings.LastIndex(out, ansi.ResetModeBracketedPaste), strings.LastIndex(out, ansi.SetModeBracketedPaste))
	for _, query := range []string{"\x1b]10;?", "\x1b]11;?", "\x1b[6n", "\x1b[c"} {
		require.NotContains(x.t, out, query, "a question to the terminal")
	}
}

// raw turns the echo of what is typed off.
func (x *terminal) raw() {
	x.t.Helper()
	_, err := term.MakeRaw(int(x.tty.Fd()))
	require.NoError(x.t, err)
}
