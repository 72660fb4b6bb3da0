package tui

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// The libraries would ask the terminal for its colours in any program that they are linked into.
func TestLinkedIn_LeavesTheTerminalAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "link")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./testdata/link").CombinedOutput()
	require.NoError(t, err, string(out))
	for name, ci := range map[string][]string{
		"without CI": nil, "with CI": {"CI=true"}, "with an empty CI": {"CI="},
	} {
		t.Run(name, func(t *testing.T) {
			seen := filepath.Join(t.TempDir(), "seen")
			x := openTerminal(t, 80, 24)
			x.quiet(t)
			x.press("typed ahead\n")
			x.start(path, append(ci, "TUI_TEST_SEEN="+seen)...)
			code, out := x.end()
			require.Zero(t, code, out)
			require.Equal(t, lastLine, out, "something came out")

			text, err := os.ReadFile(seen)
			require.NoError(t, err)
			typed, env, _ := strings.Cut(string(text), "\n")
			require.Equal(t, "typed ahead", typed)
			require.ElementsMatch(t, x.cmd.Env, strings.Split(env, "\n"))
		})
	}
}

func TestInteractive(t *testing.T) {
	ours, tty, err := pty.Open()
	require.NoError(t, err)
	defer ours.Close()
	defer tty.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for name, tt := range map[string]struct {
		in, out *os.File
		env     map[string]string
		want    bool
	}{
		"a terminal":              {tty, tty, nil, true},
		"input from elsewhere":    {null, tty, nil, false},
		"output to elsewhere":     {tty, null, nil, false},
		"CI":                      {tty, tty, map[string]string{"CI": "true"}, false},
		"CI, but empty":           {tty, tty, map[string]string{"CI": ""}, true},
		"CI=false":                {tty, tty, map[string]string{"CI": "false"}, true},
		"a terminal without keys": {tty, tty, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			lookup := func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }
			require.Equal(t, tt.want, Interactive(tt.in, tt.out, lookup))
		})
	}
}
