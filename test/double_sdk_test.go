package test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// officialWorker starts a handler file with the official package, as its users do. It holds its polls
// for up to 90 s after a signal, so it is killed at the end.
func officialWorker(t *testing.T, env []string, file string) *process {
	t.Helper()
	env = append(env, "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS=true", "RUNPOD_SKIP_GPU_CHECK=true")
	return start(t, command{args: []string{python(t), "-u", handler(t, file)}, env: env, dir: t.TempDir()})
}

// The double must be a platform that the official worker can work for, or tests against it prove little.
func TestDoubleServesTheOfficialWorker(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.file, func(t *testing.T) {
			t.Parallel()
			d := apidouble.New(t)
			officialWorker(t, environment(d, "w1"), kind.file)
			d.Offer(`{"id":"j1","input":{"items":["a","b"]}}`)

			eventually(t, func() bool { return len(d.Posts(apidouble.Done, "j1")) > 0 }, "no result")
			done := d.Posts(apidouble.Done, "j1")[0]
			if kind.streams {
				require.JSONEq(t, `{"output":[]}`, done.Body)
				chunks := d.Calls(apidouble.Stream)
				require.Len(t, chunks, 2)
				require.JSONEq(t, `{"output":"a"}`, chunks[0].Body)
			} else {
				require.JSONEq(t, `{"output":{"items":["a","b"]}}`, done.Body)
			}
			require.Equal(t, "w1", done.Worker)
			require.Equal(t, platformKey, done.Header.Get("Authorization"))
		})
	}
}
