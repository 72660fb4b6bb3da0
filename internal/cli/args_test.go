package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormalize(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{"a flag of the SDK", []string{"x", "serve", "--test_input", "{}"}, []string{"x", "serve", "--test_input", "{}"}},
		{"a flag of the SDK with dashes", []string{"x", "serve", "--test-input={}"}, []string{"x", "serve", "--test_input={}"}},
		{"our flag with underscores", []string{"x", "serve", "--sync_threads", "2"}, []string{"x", "serve", "--sync-threads", "2"}},
		{"an underscore in a value stays", []string{"x", "serve", "--handler", "my_handler.py"}, []string{"x", "serve", "--handler", "my_handler.py"}},
		{"a common flag before the command", []string{"x", "--log-level", "WARN", "--no_color", "serve"}, []string{"x", "serve", "--log-level", "WARN", "--no-color"}},
		{"a common flag with =", []string{"x", "--log-level=WARN", "serve", "--port", "1"}, []string{"x", "serve", "--log-level=WARN", "--port", "1"}},
		{"arguments between the flags", []string{"x", "cache", "sync", "/a", "--volume", "/v", "/b", "--json"}, []string{"x", "cache", "--volume", "/v", "--json", "sync", "/a", "/b"}},
		{"arguments of a command that has none", []string{"x", "run", "stray", "--no-shim"}, []string{"x", "run", "stray", "--no-shim"}},
		{"a value that is missing", []string{"x", "cache", "sync", "--volume"}, []string{"x", "cache", "--volume", "sync"}},
		{"help stays in front", []string{"x", "--help"}, []string{"x", "--help"}},
		{"an unknown flag is left to the parser", []string{"x", "serve", "--no_such"}, []string{"x", "serve", "--no_such"}},
		{"nothing at all", []string{"x"}, []string{"x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, normalize(tt.args, newApp(withFlags)))
		})
	}
}

func TestSplitCommand(t *testing.T) {
	own, command := splitCommand([]string{"x", "run", "--", "bash", "-c", "a -- b", "--"})
	require.Equal(t, []string{"x", "run"}, own)
	require.Equal(t, []string{"bash", "-c", "a -- b", "--"}, command)
}
