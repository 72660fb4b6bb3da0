package test

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
	"runpodctl-worker/test/proctree"
)

// LE-17: asking for help does nothing else: no file, no child, no need for a home.
func TestLE17HelpHasNoSideEffects(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"--version"}, {"serve", "--help"}, {"run", "--help"}} {
		t.Run(args[len(args)-1]+" "+args[0], func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o500))
			// The best of three: the machine may be busy with the other tests.
			walls := make([]time.Duration, 0, 3)
			for range cap(walls) {
				walls = append(walls, help(t, dir, args))
			}
			require.Less(t, slices.Min(walls), 300*time.Millisecond)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// help runs the binary with an empty environment and watches for children while it lives.
func help(t *testing.T, dir string, args []string) time.Duration {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Dir, cmd.Env = dir, []string{}
	began := time.Now()
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			require.NoError(t, err)
			return time.Since(began)
		default:
			require.Empty(t, proctree.Descendants(cmd.Process.Pid))
		}
	}
}

// CT-09: one line of version and commit, and the same words in every call.
func TestCT09VersionIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	p := runToEnd(t, command{args: []string{binary(t), "--version"}})
	require.Zero(t, p.wait(t))
	require.Equal(t, "runpodctl-worker "+testVersion+" ("+testCommit+")\n", p.stdout.String())

	w := runWorker(t, apidouble.New(t), "generator.py", nil)
	w.Offer(`{"id":"j1","input":{"items":["a"]}}`)
	w.result(t, "j1")
	for _, kind := range []string{apidouble.Take, apidouble.Done, apidouble.Stream, apidouble.Stop, apidouble.Ping} {
		eventually(t, func() bool { return len(w.Calls(kind)) > 0 }, "no %s", kind)
		for _, call := range w.Calls(kind) {
			require.Contains(t, call.Header.Get("User-Agent"), testVersion+" ("+testCommit, kind)
		}
	}
}
