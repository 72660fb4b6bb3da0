package test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

func largeJob(id string, bytes int) string {
	return fmt.Sprintf(`{"id":%q,"input":{"bytes":%d}}`, id, bytes)
}

// requireLarge compares without quoting megabytes.
func requireLarge(t *testing.T, bytes int, post apidouble.Call) {
	t.Helper()
	if want := `{"output":"` + strings.Repeat("x", bytes) + `"}`; post.Body != want {
		require.FailNow(t, "the body is another one", "%d bytes, want %d", len(post.Body), len(want))
	}
	require.Equal(t, fmt.Sprint(len(post.Body)), post.Header.Get("Content-Length"))
}

// A large result goes out as it is, by either door, up to the limit to the byte.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	const most = 20_000_000 - len(`{"output":""}`)
	for _, tt := range []struct {
		name string
		door []string
	}{
		{"the worker's package", []string{"--python", python(t), "--handler", handler(t, "large_async.py")}},
		{"the gateway", []string{"--no-shim", "--", python(t), "-u", handler(t, "large_async.py")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := apidouble.New(t)
			w := runCommand(t, d, nil, append([]string{"--state-dir", t.TempDir()}, tt.door...)...)
			for _, bytes := range []int{1<<20 - 3, 1<<20 - 2, 8_000_000, most} {
				id := fmt.Sprint(bytes)
				d.Offer(largeJob(id, bytes))
				eventually(t, func() bool { return len(w.results(id)) > 0 }, "no result of %s", id)
				requireLarge(t, bytes, w.results(id)[0])
			}
			for _, bytes := range []int{most + 1, 25_000_000} {
				id := fmt.Sprint(bytes)
				d.Offer(largeJob(id, bytes))
				require.Equal(t, fmt.Sprintf("the result is too large: %d bytes, the limit is 20000000", bytes+len(`{"output":""}`)),
					w.result(t, id).errorText(t))
			}
		})
	}
}

// A large result of a worker that was killed is delivered by the next one, once; nothing is left of it.
func TestPS01ALargeResultOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	const bytes = 8_000_000
	d, state := apidouble.New(t), t.TempDir()
	d.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: http.StatusServiceUnavailable} })
	w := runWorker(t, d, "large_async.py", nil, "--state-dir", state)
	d.Offer(largeJob("j", bytes))
	eventually(t, func() bool { return len(w.results("j")) > 0 }, "no post")
	w.kill(t)
	require.Len(t, spooled(t, state), 1)
	d.On(apidouble.Done, nil)

	w = runWorker(t, d, "large_async.py", nil, "--state-dir", state)
	d.Offer(largeJob("next", bytes))
	eventually(t, func() bool { return len(d.Accepted(apidouble.Done)) == 2 }, "not delivered")
	for _, post := range d.Accepted(apidouble.Done) {
		requireLarge(t, bytes, post)
	}
	w.signal(t, syscall.SIGTERM)
	require.Zero(t, w.wait(t), w.stderr)
	left, err := filepath.Glob(filepath.Join(state, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// spooled are the files of large outputs in a journal, results or not.
func spooled(t *testing.T, state string) (files []string) {
	t.Helper()
	for _, end := range []string{"*.out", "*.new"} {
		found, err := filepath.Glob(filepath.Join(state, "*", end))
		require.NoError(t, err)
		files = append(files, found...)
	}
	return files
}
