package test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the user got wrong is said in one line that names it.
func TestUsageErrors(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { taken.Close() })
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	file := handler(t, "sync.py")

	for name, row := range map[string]struct {
		args  []string
		code  int
		names string
	}{
		"bad JSON":          {[]string{"serve", "--handler", file, "--test_input", `{"input":`}, 2, "test_input"},
		"missing input":     {[]string{"serve", "--handler", file, "--test_input", `{"prompt":"x"}`}, 2, "input"},
		"no such job file":  {[]string{"serve", "--handler", file, "--test_input", "nowhere.json"}, 2, "nowhere.json"},
		"no such handler":   {[]string{"serve", "--handler", "nowhere.py", "--test_input", itemsJob}, 2, "nowhere.py"},
		"no handler at all": {[]string{"serve", "--test_input", itemsJob}, 2, "--handler"},
		"unknown flag":      {[]string{"serve", "--no-such-flag"}, 2, "no-such-flag"},
		"unknown command":   {[]string{"sevre"}, 2, "sevre"},
		"bad value":         {[]string{"serve", "--port", "many"}, 2, "port"},
		"bad size":          {[]string{"serve", "--handler", file, "--max-result", "big"}, 2, "--max-result big"},
		"no bucket":         {[]string{"serve", "--handler", file, "--offload-outputs"}, 2, "--offload-outputs: BUCKET_ENDPOINT_URL is not set"},
		"logs in a file":    {[]string{"serve", "--handler", "echo", "--log-dir", file}, 2, "--log-dir: "},
		"logs nowhere":      {[]string{"serve", "--handler", "echo", "--log-dir", ""}, 2, "--log-dir: names no directory"},
		"logs of others":    {[]string{"serve", "--no-worker", "--log-dir", "logs"}, 2, "--log-dir makes no sense beside it"},
		"logs of one job":   {[]string{"serve", "--handler", "echo", "--test_input", itemsJob, "--log-dir", "logs"}, 2, "--log-dir makes no sense beside it"},
		"stray argument":    {[]string{"serve", "stray", "--handler", "echo"}, 2, "stray"},
		"port taken":        {[]string{"serve", "--handler", "echo", "--host", "127.0.0.1", "--port", port}, 1, port},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := runToEnd(t, command{args: append([]string{binary(t)}, row.args...), dir: t.TempDir()})
			require.Equal(t, row.code, p.wait(t), p.stderr)
			require.Empty(t, p.stdout.String())
			require.Len(t, p.stderr.lines(), 1, p.stderr)
			require.Contains(t, p.stderr.String(), row.names)
			require.NotContains(t, p.stderr.String(), "goroutine ")
		})
	}
}
