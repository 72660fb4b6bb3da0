package declared

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/proc"
)

func TestExec(t *testing.T) {
	for _, tt := range []struct{ name, body, problem, output string }{
		{"exit 0", "exec: echo good", "", "good\n"},
		{"a list", "exec: [sh, -c, 'echo $0', a b]", "", "a b\n"},
		{"no output", "exec: 'true'", "", ""},
		{"exit 3, and why", "exec: 'echo first; echo the model is gone >&2; echo last; exit 3'", "exit code 3: the model is gone", "the model is gone\n"},
		{"a signal", "exec: 'kill -SEGV $$'", "killed by SIGSEGV", ""},
		{"no such program", "exec: [/none/such]", "start /none/such", ""},
		{"a long line", "exec: 'head -c 5000 /dev/zero | tr \"\\0\" x; exit 1'", strings.Repeat("x", shownLine) + "…", "xxx"},
		{
			"a secret across the end of what is shown",
			"exec: 'echo $(head -c 190 /dev/zero | tr \"\\0\" x) http://bob:hunter2@host; exit 1'", strings.Repeat("x", 190) + " …", "xxx",
		},
		{"no text", `exec: 'printf "\377\376\n"; exit 1'`, "exit code 1: �", "�"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := runOne(t, "    "+tt.body+"\n", withEnv())
			requireResult(t, res, tt.problem)
			require.Contains(t, res.Output, tt.output)
		})
	}
}

func TestExec_MuchOutput(t *testing.T) {
	res := runOne(t, "    exec: 'yes 0123456 | head -c 1000000; echo; echo last words; exit 1'\n", withEnv())
	require.Equal(t, checks.Fail, res.Status)
	require.Equal(t, "exit code 1: last words", res.Summary)
	require.Regexp(t, `^\(\d+ bytes before\)\n`, res.Output)
	require.True(t, strings.HasSuffix(res.Output, "\nlast words\n"))
	require.Less(t, len(res.Output), keptOutput+100)
}

func TestExec_NoHalfOfASecretFirst(t *testing.T) {
	res := runOne(t, "    exec: 'echo http://bob:hunter2@host; head -c 8170 /dev/zero | tr \"\\0\" x; echo'\n", withEnv())
	require.Contains(t, res.Output, "(24 bytes before)\nxxx")
}

// pidIn waits for a process id in a file.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	return pid
}

func TestExec_IsKilledAtItsLimit(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pid")
	stubborn := command{"sh", "-c", `trap "" TERM; echo waiting; (trap "" TERM; while :; do sleep 1; done) & echo $! > ` + pids + `; while :; do sleep 1; done`}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan checks.Result)
	go func() { done <- stubborn.run(ctx, withEnv()) }()
	child := pidIn(t, pids)
	cancel(errors.New("no answer within 2s"))
	res := <-done
	require.Equal(t, checks.Fail, res.Status)
	require.Equal(t, "no answer within 2s", res.Summary)
	require.Equal(t, "waiting\n", res.Output)
	require.False(t, proc.Alive(child), "its children ended, too")
}

func TestExec_WhatItLeavesRunningEnds(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pid")
	res := runOne(t, "    exec: 'sleep 1000 >/dev/null 2>&1 & echo $! > "+pids+"'\n", withEnv())
	require.Equal(t, checks.Pass, res.Status, res.Summary)
	require.False(t, proc.Alive(pidIn(t, pids)))
}

// A daemon leaves the process group of the command, and its parent is gone before anybody looks.
func TestExec_DaemonsEndToo(t *testing.T) {
	const daemon = `(setsid sh -c 'echo $$ > "$0"; exec sleep 1000' %s >/dev/null 2>&1 &); while ! [ -s %s ]; do sleep 0.01; done`
	for name, tt := range map[string]struct {
		then, problem string
	}{
		"what it leaves running": {"", ""},
		"at its limit":           {"; sleep 1000", "no answer within 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan checks.Result)
			go func() {
				done <- command{"sh", "-c", fmt.Sprintf(daemon, pids, pids) + tt.then}.run(ctx, withEnv())
			}()
			pid := pidIn(t, pids)
			if tt.problem != "" {
				cancel(errors.New(tt.problem))
			}
			requireResult(t, <-done, tt.problem)
			cancel(nil)
			require.Eventually(t, func() bool { return !proc.Alive(pid) }, 5*time.Second, 5*time.Millisecond)
		})
	}
}

func TestExec_Interrupted(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pid")
	list, err := Load(t.Context(), write(t, "checks:\n  - {name: it, exec: 'echo $$ > "+pids+"; sleep 1000'}\n"), withEnv())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan checks.Report)
	go func() {
		steps := []checks.Step{{Check: list[0], In: checks.Start}}
		done <- checks.NewRunner(checks.Options{}).Run(ctx, steps, nil)
	}()
	pid := pidIn(t, pids)
	cancel()
	report := <-done
	require.Equal(t, checks.Skip, report.Rows[0].Result.Status)
	require.Equal(t, "interrupted", report.Rows[0].Result.Summary)
	require.Eventually(t, func() bool { return !proc.Alive(pid) }, 30*time.Second, 5*time.Millisecond)
}
