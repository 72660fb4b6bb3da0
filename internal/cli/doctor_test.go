package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// torn is a pipe whose reader has gone.
type torn struct{}

func (torn) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestDoctor_PlainLinesThatNobodyReads(t *testing.T) {
	var stderr buffer
	code := Main(Process{
		Args:    []string{"runpodctl-worker", "doctor", "--plain", "--only", "system", "--watch", "1ms"},
		Lookup:  func(string) (string, bool) { return "", false },
		Environ: os.Environ,
		Stdin:   strings.NewReader(""),
		Stdout:  torn{}, Stderr: &stderr,
		Exit: func(int) { panic("no signal came") },
	})
	require.Equal(t, 1, code)
	require.Contains(t, stderr.String(), "write the report: broken pipe")
}

func TestDoctor_ACheckNamedAsTheHandlersRow(t *testing.T) {
	dir := t.TempDir()
	file, handler := filepath.Join(dir, "checks.yaml"), filepath.Join(dir, "handler.py")
	require.NoError(t, os.WriteFile(file, []byte("checks:\n  - {name: Handler, files: [/]}\n"), 0o600))
	require.NoError(t, os.WriteFile(handler, nil, 0o600))
	i := &invocation{}
	require.Equal(t, 2, i.run("doctor", "--list", "--checks", file, "--handler", handler))
	require.Contains(t, i.stderr.String(), "choose another name")
}
