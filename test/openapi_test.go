package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// schemathesis calls each operation of the OpenAPI document with examples, with the limits of the schemas, and
// with random values, follows the links, and checks the answers against the document.
func TestOpenAPIBySchemathesis(t *testing.T) {
	t.Parallel()
	st := filepath.Join(filepath.Dir(python(t)), "st")
	if _, err := os.Stat(st); err != nil {
		missing(t, "no schemathesis (make test installs it for Python 3.11 and newer): %v", err)
	}
	for name, row := range map[string]struct {
		serve, operations []string
	}{
		// A worker pauses after takes that come back empty within a second, so that is the least hold here.
		"clients": {[]string{"--handler", "echo", "--max-hold", "1s"}, []string{"--exclude-tag", "Workers", "--exclude-tag", "This server"}},
		// They would take the jobs from under the clients.
		"workers": {[]string{"--no-worker", "--max-hold", "20ms"}, []string{"--include-tag", "Workers"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, append([]string{"--log-level", "error"}, row.serve...)...)
			args := append([]string{
				st, "run", server.url() + "/openapi.json", "--max-examples", "10", "--seed", "1",
				"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance," +
					"response_schema_conformance,unsupported_method",
			}, row.operations...)
			run := start(t, command{args: args, dir: t.TempDir()})
			// It makes about a thousand calls, one after the other: 20 s alone, a minute beside other tests.
			require.Zero(t, run.waitFor(t, 10*patience), run.stdout)
			require.Contains(t, run.stdout.String(), "Stateful", "all phases are to run")
			require.True(t, server.alive())
		})
	}
}
