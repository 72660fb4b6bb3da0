package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindHandler(t *testing.T) {
	const starts, library = "import runpod\nrunpod.serverless.start({})\n", "def helper(): pass\n"
	tests := []struct {
		name    string
		files   map[string]string
		flag    string
		command []string
		env     string
		want    handlerSpec
		wantErr string
	}{
		{name: "the flag", files: map[string]string{"h.py": ""}, flag: "h.py", want: handlerSpec{file: "h.py"}},
		{name: "a function in a file", files: map[string]string{"h.py": ""}, flag: "h.py:f", want: handlerSpec{file: "h.py", fn: "f"}},
		{name: "echo", flag: "echo", want: handlerSpec{echo: true}},
		{name: "a command", command: []string{"bash", "start.sh"}, want: handlerSpec{command: []string{"bash", "start.sh"}}},
		{name: "the flag beats the environment", files: map[string]string{"h.py": ""}, flag: "h.py", env: "echo", want: handlerSpec{file: "h.py"}},
		{name: "the environment beats convention", files: map[string]string{"handler.py": starts}, env: "echo", want: handlerSpec{echo: true}},
		{name: "handler.py first", files: map[string]string{"handler.py": starts, "src/handler.py": starts}, want: handlerSpec{file: "handler.py"}},
		{name: "a handler.py that starts nothing is passed over", files: map[string]string{"handler.py": library, "src/rp_handler.py": starts}, want: handlerSpec{file: "src/rp_handler.py"}},
		{name: "none", wantErr: "no handler found"},
		{name: "both ways", flag: "echo", command: []string{"true"}, wantErr: "not both"},
		{name: "a missing file", flag: "no.py", wantErr: "--handler no.py: no such file"},
		{name: "a missing file in the environment", env: "no.py", wantErr: "RUNPOD_HANDLER no.py: no such file"},
		{name: "not Python", flag: "start.sh", wantErr: "goes after --"},
		{name: "no function", files: map[string]string{"h.py": ""}, flag: "h.py:", wantErr: "name the function"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for path, text := range tt.files {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
			}
			lookup := func(name string) (string, bool) { return tt.env, name == "RUNPOD_HANDLER" && tt.env != "" }
			got, err := findHandler(tt.flag, tt.command, lookup)
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}
