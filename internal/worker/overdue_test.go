package worker

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// stubborn does not stop in the jobs whose id begins with "stuck": they last as long as their id says, or until the
// program is killed.
func stubborn(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	if !strings.HasPrefix(job.ID, "stuck") {
		return crashing(ctx, job, sink)
	}
	_, length, _ := strings.Cut(job.ID, "-")
	d, err := time.ParseDuration(length)
	if err != nil {
		return protocol.Outcome{}, err
	}
	select {
	case <-programOf(ctx).exited:
		return protocol.Outcome{}, errSignal
	case <-time.After(d):
		return protocol.Outcome{Output: []byte(`"late"`)}, nil
	}
}

const stuckLine = "The handler goes on with a job that has ended."

func TestOverdue_AloneIsKilledFor(t *testing.T) {
	tests := map[string]struct {
		loading, patience time.Duration
	}{
		"a quick start":             {time.Second, minOverdue},
		"a start that takes longer": {time.Minute, time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{MaxRestarts: 1}, stubborn, func(r *rig) {
				r.handler.startTime = tt.loading
				offer(r, "stuck-1h")
				r.start()
				time.Sleep(tt.loading + time.Second)
				r.api.StopJobs("stuck-1h")
				offer(r, "a-1s")
				time.Sleep(tt.patience - 100*time.Millisecond)
				require.Len(r, r.programs(), 1)
				require.Empty(r, r.worker.ledger.ids(), "nothing is owed for it")
				require.Empty(r, r.logs.atLeast(slog.LevelWarn))
				require.Equal(r, 1, r.api.Waiting(), "its slot is busy")
				time.Sleep(200 * time.Millisecond)
				require.Len(r, r.programs(), 2, "it does not count as a crash")
				require.True(r, r.handler.killed.Load())
				require.Equal(r, "a-1s", r.results(tt.loading+3*time.Second, 1)[0].Job)
				require.Len(r, lines(r.logs.atLeast(slog.LevelWarn), stuckLine), 1)
			})
		})
	}
}

func TestOverdue_ComesBackInTime(t *testing.T) {
	bubble(t, Config{}, stubborn, func(r *rig) {
		offer(r, "stuck-9s", "a-1s")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("stuck-9s")
		r.results(10*time.Second, 1)
		require.Equal(r, "a-1s", r.results(0, 1)[0].Job)
		time.Sleep(time.Minute)
		require.Len(r, r.programs(), 1)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}

func TestOverdue_WaitsForTheOthers(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, stubborn, func(r *rig) {
		offer(r, "stuck-1h", "a-60s")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("stuck-1h")
		time.Sleep(50 * time.Second)
		require.Len(r, r.programs(), 1)
		require.Len(r, lines(r.logs.atLeast(slog.LevelWarn), stuckLine), 1)
		offer(r, "b-2s", "c-2s")
		time.Sleep(5 * time.Second)
		require.Equal(r, 2, r.api.Waiting(), "others do not go in, or the end would never come")
		require.Contains(r, r.results(10*time.Second, 1)[0].Body, "done")
		time.Sleep(time.Second)
		require.Len(r, r.programs(), 2)
		r.results(3*time.Second, 3)
	})
}

// A handler that comes back late after all has its program go on.
func TestOverdue_ComesBackLate(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, stubborn, func(r *rig) {
		offer(r, "stuck-20s", "a-60s")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("stuck-20s")
		time.Sleep(14 * time.Second)
		offer(r, "b-2s")
		require.Equal(r, 1, r.api.Waiting())
		require.Equal(r, "b-2s", r.results(10*time.Second, 1)[0].Job)
		require.Len(r, r.programs(), 1)
	})
}

// Jobs that nobody waits for do not wait for each other.
func TestOverdue_AllAreStuck(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, stubborn, func(r *rig) {
		offer(r, "stuck1-1h", "stuck2-1h")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("stuck1-1h")
		time.Sleep(30 * time.Second)
		require.Len(r, r.programs(), 1)
		r.api.StopJobs("stuck2-1h")
		time.Sleep(12 * time.Second)
		require.Len(r, r.programs(), 2)
		require.Empty(r, r.api.Calls(apidouble.Done))
		offer(r, "a-1s", "b-1s")
		r.results(2*time.Second, 2)
	})
}

func TestOverdue_DrainDoesNotWaitForIt(t *testing.T) {
	bubble(t, Config{}, stubborn, func(r *rig) {
		offer(r, "stuck-1h")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("stuck-1h")
		time.Sleep(time.Second)
		r.drain()
		_, err := r.end(time.Second)
		require.NoError(r, err)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}

// Whichever comes first, the program does not outlive its worker.
func TestOverdue_DrainAtTheSameTime(t *testing.T) {
	for range 20 {
		bubble(t, Config{}, stubborn, func(r *rig) {
			offer(r, "stuck-1h")
			r.start()
			time.Sleep(time.Second)
			r.api.StopJobs("stuck-1h")
			time.Sleep(minOverdue)
			r.drain()
			_, err := r.end(time.Second)
			require.NoError(r, err)
			for _, program := range r.programs() {
				require.True(r, closed(program.exited))
			}
		})
	}
}
