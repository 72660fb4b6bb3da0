package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// On a terminal a bar tells how far it is. Ctrl-C takes it away and leaves the terminal as it was.
func TestCacheOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.fresh()
	require.NoError(t, os.WriteFile(filepath.Join(s.models, "model"), []byte("weights"), 0o600))
	lock := filepath.Join(filepath.Dir(s.manifest), "sync.lock") // of another worker, which it waits for
	require.NoError(t, os.MkdirAll(filepath.Dir(lock), 0o700))
	require.NoError(t, os.WriteFile(lock, []byte(`{"host":"other","pid":7,"boot":"b","pid_namespace":"p","id":"i"}`), 0o600))

	term := newTerminal(t, 100, 24)
	term.enter("stty -a > before")
	term.enter(binary(t) + " cache sync --volume " + s.volume + " --namespace ep " + s.models)
	term.shows("sync ░░░")
	term.keys("C-c")
	term.shows("runpodctl-worker: interrupted")
	term.enter("echo code $?; stty -a > after")
	term.shows("code 130")
	require.NotContains(t, term.screen(), "░", "nothing is left of the bar")
	eventually(t, func() bool { return exists(filepath.Join(term.dir, "after")) }, "the shell goes on")
	require.Equal(t, term.file("before"), term.file("after"))

	require.NoError(t, os.Remove(lock))
	term.enter("clear; NO_COLOR=1 " + binary(t) + " cache sync --volume " + s.volume + " --namespace ep " + s.models)
	term.shows("synced 1 file(s) to")
	require.NotContains(t, term.screen(), "░")
}

// A script reads one document, and nothing else.
func TestCacheInAScript(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.fresh()
	require.NoError(t, os.WriteFile(filepath.Join(s.models, "model"), []byte("weights"), 0o600))
	for _, action := range []string{"sync", "status", "verify", "prune", "hydrate"} {
		args := []string{binary(t), "cache", action, "--json", "--volume", s.volume, "--namespace", "ep"}
		if action != "verify" && action != "prune" { // these are for the whole mirror
			args = append(args, s.models)
		}
		p := runToEnd(t, command{args: args})
		require.Zero(t, p.wait(t), p.stderr)
		require.Len(t, p.stdout.lines(), 1, action)
		got := decode[struct {
			Schema         int
			Action, Mirror string
			Available      bool
			Report         map[string]any
		}](t, p.stdout.String())
		require.Equal(t, 1, got.Schema)
		require.Equal(t, action, got.Action)
		require.Equal(t, filepath.Dir(s.manifest), got.Mirror)
		require.True(t, got.Available)
		require.NotEmpty(t, got.Report)
	}
}
