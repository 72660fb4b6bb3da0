package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// terminal is a terminal emulator of its own, with a shell in it.
type terminal struct {
	t      *testing.T
	socket string
	dir    string
}

// newTerminal starts one of a size. It is a separate tmux server, which ends with the test.
func newTerminal(t *testing.T, columns, rows int) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		missing(t, "no tmux in PATH (make test installs it)")
	}
	term := &terminal{t: t, socket: filepath.Join(t.TempDir(), "tmux"), dir: t.TempDir()}
	term.tmux("-f", os.DevNull, "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows), "-c", term.dir,
		"env", "-i", "PATH="+os.Getenv("PATH"), "TERM=screen-256color", "LC_ALL=C.UTF-8", "PS1=ready> ", "sh")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", term.socket, "kill-server").Run() })
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", term.socket}, args...)...).CombinedOutput()
	require.NoError(term.t, err, "tmux %v: %s", args, out)
	return string(out)
}

// screen is what stands there, with the lines whole that were wider than it.
func (term *terminal) screen() string { return term.tmux("capture-pane", "-p", "-J") }

func (term *terminal) keys(keys ...string) { term.tmux(append([]string{"send-keys"}, keys...)...) }

func (term *terminal) enter(line string) { term.keys("-l", line); term.keys("Enter") }

// shows waits until the screen shows a text.
func (term *terminal) shows(text string) {
	term.t.Helper()
	eventually(term.t, func() bool { return strings.Contains(term.screen(), text) }, "the screen shows %q", text)
	if term.t.Failed() {
		term.t.Log(term.screen())
	}
}

func (term *terminal) file(name string) string {
	term.t.Helper()
	path := filepath.Join(term.dir, name)
	eventually(term.t, func() bool { info, err := os.Stat(path); return err == nil && info.Size() > 0 }, "%s is written", name)
	text, err := os.ReadFile(path)
	require.NoError(term.t, err)
	return string(text)
}

// runEnded finds how long the checks took, which the title says once they have run.
var runEnded = regexp.MustCompile(`\bin \d+\.\d+ s`)

// CT-02, CT-04: the doctor's screen in a real terminal, from start to end; the terminal is left as it was.
func TestDoctor_Screen(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {20, 10}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, size[0], size[1])
			term.enter("stty -a > before")
			term.file("before")
			term.enter(strings.Join(roomy, " ") + " RUNPOD_MIN_MEMORY_GB=99999 " + binary(t) + " doctor --target " + target(t) +
				"; echo $? > code; stty -a > after")
			term.shows("FAIL") // memory, in the first row
			term.keys("j")
			term.keys("r")
			term.keys("/")
			term.enter("memory")
			term.keys("s")
			var saved []string
			eventually(t, func() bool {
				saved, _ = filepath.Glob(filepath.Join(term.dir, "doctor-*.json"))
				return len(saved) == 1
			}, "the report is saved")
			term.keys("?") // any key leaves the help
			term.keys("?")
			eventually(t, func() bool { return runEnded.MatchString(term.screen()) }, "the checks have run") // else q interrupts
			term.keys("q")
			require.Equal(t, "1\n", term.file("code"))
			require.Equal(t, term.file("before"), term.file("after"))

			text, err := os.ReadFile(saved[0])
			require.NoError(t, err)
			var report doctorReport
			require.NoError(t, json.Unmarshal(text, &report))
			require.Equal(t, "fail", report.row(t, "memory").Status)
			term.shows("failed") // the last state stays readable
			require.NotContains(t, term.tmux("display-message", "-p", "#{alternate_on}"), "1")
			require.Contains(t, term.tmux("display-message", "-p", "#{cursor_flag}"), "1")
		})
	}
}

// CT-08: what hangs does not hold the quit key.
func TestCT08QuitWhileACheckHangs(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"q": "q", "Ctrl-C": "C-c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newTerminal(t, 100, 30)
			require.NoError(t, os.WriteFile(filepath.Join(term.dir, "checks.yaml"), []byte(`
checks:
  - name: stubborn
    exec: "trap '' TERM INT; while :; do sleep 1; done"
    timeout: 10m
`), 0o600))
			term.enter(strings.Join(roomy, " ") + " " + binary(t) + " doctor --target " + target(t) +
				" --checks checks.yaml; echo $? > code")
			term.shows("stubborn")
			term.shows(" s ") // elapsed times: the others have run
			term.keys(key)
			require.Equal(t, "130\n", term.file("code"))
		})
	}
}

// CT-06: colours are for the terminal that they are written to, not for a file, whatever else is a terminal.
func TestCT06ColourFollowsStdout(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, 80, 24)
	doctor := binary(t) + " doctor --plain --only memory"
	term.enter(doctor + " > redirected; echo done > code")
	term.file("code")
	require.NotContains(t, term.file("redirected"), "\x1b")
	// script gives the program a terminal for stdout, and notes what it writes there.
	term.enter("script -qec '" + doctor + " 2>/dev/null' typescript; echo done > code2")
	term.file("code2")
	require.Contains(t, term.file("typescript"), "\x1b[")
}

// LE-17: whoever asks for help, or runs a worker at a terminal, has nothing sent to or read from it.
func TestLE17TerminalIsNotAsked(t *testing.T) {
	t.Parallel()
	term := newTerminal(t, 80, 24)
	// script gives the program a terminal, and notes what it writes there.
	term.enter("TERM=xterm-256color script -qec '" + binary(t) + " --version' typescript; echo done > code")
	term.file("code")
	require.NotContains(t, strings.Join(strings.Split(term.file("typescript"), "\n")[1:], "\n"), "\x1b")
}
