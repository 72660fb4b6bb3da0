package program_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/journal"
	"runpodctl-worker/internal/protocol"
)

// Outputs of every size come byte for byte, and the large ones in a file that has no name.
func TestLargeOutputs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c := startFile(t, write(t, `
import runpod
def handler(job):
    n = job["input"]
    return ("%x-" % n * (n // 2))[:n - 2]
runpod.serverless.start({"handler": handler})`))
	for _, size := range []int{protocol.LargeOutput - 1, protocol.LargeOutput, protocol.LargeOutput + 1, 8_000_000, 19_900_000, 64 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			job, err := protocol.ParseJob(fmt.Appendf(nil, `{"id":"j","input":%d}`, size))
			require.NoError(t, err)
			out, err := c.Handle(t.Context(), job, &sink{})
			require.NoError(t, err)
			require.Equal(t, size >= protocol.LargeOutput, out.Spool != nil)
			require.Equal(t, int64(size), out.Size())
			require.Empty(t, files(t, os.Getenv("TMPDIR")))
			out = whole(t, out)
			pattern := fmt.Sprintf("%x-", size)
			want := `"` + strings.Repeat(pattern, size/len(pattern)+1)[:size-2] + `"`
			requireSame(t, want, string(out.Output))
		})
	}
}

// requireSame compares without quoting megabytes.
func requireSame(t *testing.T, want, got string) {
	t.Helper()
	if want != got {
		require.FailNow(t, "the output is another one", "%d bytes, want %d", len(got), len(want))
	}
}

// files are the files with large outputs below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "large-*"))
	require.NoError(t, err)
	return found
}

// A large result that comes through the gateway goes to a file where there is a place for it.
func TestLargeOutputs_ThroughTheGateway(t *testing.T) {
	t.Parallel()
	j, err := journal.Open([]string{t.TempDir()}, "w-1", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Close()) })
	c := start(t, program.Options{
		Args: []string{installed(t), "-u", write(t, `
import runpod
runpod.serverless.start({"handler": lambda job: "x" * job["input"]["size"]})`)},
		Env: platformEnv(), NoShim: true, WorkerID: "w-1", Spool: j.Spool,
	})
	const size = 25_000_000
	out, err := c.Handle(t.Context(), parse(t, fmt.Sprintf(`{"id":"j-1","input":{"size":%d}}`, size)), &sink{})
	require.NoError(t, err)
	require.NotNil(t, out.Spool)
	requireSame(t, `"`+strings.Repeat("x", size)+`"`, string(whole(t, out).Output))
}
