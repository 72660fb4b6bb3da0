package test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// JP-12: a job that kills the whole worker each time it runs has an end before the platform gives up on it, and the jobs beside it
// do not pay for that: the platform gives those up that were lost too often, whoever was to blame.
func TestJP12AJobThatKillsTheWorker(t *testing.T) {
	t.Parallel()
	for _, neighbours := range []int{0, 3} {
		t.Run(fmt.Sprintf("%d neighbours", neighbours), func(t *testing.T) {
			t.Parallel()
			server := serve(t, "--no-worker", "--print-env", "--worker-id", "w1", "--lease", "1s", "--sweep-interval", "100ms", "--max-retries", "5")
			env := append(server.workerEnv(), "RUNPOD_SKIP_FITNESS_CHECKS=true", "RUNPOD_PING_INTERVAL=200")
			dir, state := t.TempDir(), t.TempDir()
			killer := server.run(fmt.Sprintf(`{"dir":%q,"seconds":0.5,"kill":true}`, dir))
			var innocent []string
			for range neighbours {
				innocent = append(innocent, server.run(fmt.Sprintf(`{"dir":%q,"seconds":1.5}`, dir)))
			}
			live := func() *process {
				return start(t, command{args: []string{
					binary(t), "run", "--python", python(t), "--handler", handler(t, "assassin.py"), "--concurrency", "4", "--state-dir", state,
				}, env: env})
			}
			w := live()
			for end := time.Now().Add(2 * patience); !server.status(killer).over(); time.Sleep(20 * time.Millisecond) {
				require.True(t, time.Now().Before(end), "the job has no end")
				if !w.alive() {
					w = live() // as the platform does
				}
			}
			require.Equal(t, "worker died while running this job", server.status(killer).Error)
			for _, id := range innocent {
				require.Equal(t, `"alive"`, string(server.await(id).Output))
			}
			require.LessOrEqual(t, lineCount(filepath.Join(dir, "started")), 3+2*neighbours, "the others: once beside it, once alone")
		})
	}
}
