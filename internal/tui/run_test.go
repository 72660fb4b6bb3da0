package tui

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestRun_InTerminal(t *testing.T) {
	x := startProgram(t, "mixed")
	mark := x.await(0, "2 passed, 1 could not run, 1 failed")
	x.press("G") // the last one, which broke
	mark = x.await(mark, "This is a fault of the check")
	x.press("kr")
	mark = x.await(mark, "run number 2")
	x.press("/disk\r")
	mark = x.await(mark, "filter: disk")
	x.press("s")
	mark = x.await(mark, "saved as doctor-")
	x.press("y")
	x.await(mark, "report sent to the terminal's clipboard")
	x.press("q")

	code, out := x.end()
	require.Equal(t, 1, code)
	x.requireRestored(out)
	require.Contains(t, out, "\x1b]52;c;")

	after := ansi.Strip(out[strings.LastIndex(out, ansi.ResetModeAltScreenSaveCursor):])
	for _, want := range []string{"FAIL   disk", "3 % free", "→ Free some space.", "run number 2", "end: unfit"} {
		require.Contains(t, after, want, "the last state stays readable")
	}

	files, err := filepath.Glob(filepath.Join(x.cmd.Dir, "doctor-*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	saved, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.True(t, json.Valid(saved))
}

func TestRun_Ends(t *testing.T) {
	for name, tt := range map[string]struct {
		program string
		await   string
		do      func(x *terminal)
		code    int
		says    string
	}{
		"q after a good run": {
			"fit", "1 passed", func(x *terminal) { x.press("q") }, 0, "end: fit",
		},
		"esc after a good run": {
			"fit", "1 passed", func(x *terminal) { x.press("\x1b") }, 0, "end: fit",
		},
		"Ctrl-C after a good run": {
			"fit", "1 passed", func(x *terminal) { x.press("\x03") }, 130, "end: interrupted",
		},
		"SIGTERM": {
			"fit", "1 passed", func(x *terminal) { _ = x.cmd.Process.Signal(syscall.SIGTERM) }, 130, "end: interrupted",
		},
		"q while a check hangs": {
			"hangs", "1 of 2", func(x *terminal) { x.press("q") }, 130, "end: interrupted",
		},
		"Ctrl-C while a check hangs": {
			"hangs", "1 of 2", func(x *terminal) { x.press("\x03") }, 130, "end: interrupted",
		},
		"SIGTERM while a check hangs": {
			"hangs", "1 of 2", func(x *terminal) { _ = x.cmd.Process.Signal(syscall.SIGTERM) }, 130, "end: interrupted",
		},
		"a panic of the screen": {
			"panics", "1 passed", func(x *terminal) { x.press("a") }, 1, "index out of range",
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := startProgram(t, tt.program)
			x.await(0, tt.await)
			tt.do(x)
			code, out := x.end()
			require.Equal(t, tt.code, code, ansi.Strip(out))
			require.Contains(t, ansi.Strip(out), tt.says)
			x.requireRestored(out)
		})
	}
}

// Below nohup nothing but the terminal itself tells that it has gone.
func TestRun_EndsWithoutItsTerminal(t *testing.T) {
	for name, tt := range map[string]struct{ program, await string }{
		"after a good run":    {"fit", "1 passed"},
		"while a check hangs": {"hangs", "1 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			x := startProgram(t, tt.program, deafEnv+"=1")
			x.await(0, tt.await)
			x.leave()
			x.wait()
			require.Equal(t, 130, x.cmd.ProcessState.ExitCode())
		})
	}
}

func TestRun_TellsHowItWasLeft(t *testing.T) {
	for name, tt := range map[string]struct {
		hangs bool
		leave func(x *terminal, cancel func())
		err   error
	}{
		"q":                        {false, func(x *terminal, _ func()) { x.press("q") }, nil},
		"q while a check hangs":    {true, func(x *terminal, _ func()) { x.press("q") }, ErrInterrupted},
		"context":                  {false, func(_ *terminal, cancel func()) { cancel() }, ErrInterrupted},
		"context, and a check too": {true, func(_ *terminal, cancel func()) { cancel() }, ErrInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			x := openTerminal(t, 80, 24)
			release := make(chan struct{})
			defer close(release)
			plan := steps(
				check("memory", "Memory", checks.Early, checks.Result{Summary: "enough"}),
				checks.Check{ID: "stuck", Title: "Stuck", Phase: checks.Start, Run: func(context.Context) checks.Result {
					if tt.hangs {
						<-release
					}
					return checks.Result{}
				}},
			)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			type end struct {
				report checks.Report
				err    error
			}
			ended := make(chan end, 1)
			go func() {
				report, err := Run(ctx, Options{Steps: plan, Runner: checks.NewRunner(checks.Options{}), In: x.tty, Out: x.tty})
				ended <- end{report, err}
			}()
			if tt.hangs {
				x.await(0, "1 of 2")
			} else {
				x.await(0, "2 passed")
			}
			tt.leave(x, cancel)
			got := <-ended
			require.ErrorIs(t, got.err, tt.err)
			require.Len(t, got.report.Rows, 2)
			require.Equal(t, "enough", got.report.Rows[0].Result.Summary)
			require.NotZero(t, got.report.Began)
			if tt.hangs {
				require.Equal(t, "interrupted", got.report.Rows[1].Result.Summary)
			}
		})
	}
}

func TestRun_ResizeStorm(t *testing.T) {
	x := startProgram(t, "show")
	x.await(0, "of 12")
	sizes := [][2]uint16{{0, 0}, {1, 1}, {10, 5}, {20, 24}, {300, 100}, {80, 24}, {7, 90}, {120, 3}}
	for i := range 80 {
		x.resize(sizes[i%len(sizes)][0], sizes[i%len(sizes)][1])
		x.press("j")
	}
	x.resize(100, 30)
	x.await(0, "2 warnings, 1 could not run, 1 failed")
	x.press("q")
	code, out := x.end()
	require.Equal(t, 1, code)
	x.requireRestored(out)
}
