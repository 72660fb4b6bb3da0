package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

const gpuGone = "CUDA error: an illegal memory access was encountered"

// ailing fails the jobs whose id begins with "sick" as a handler does whose GPU is out of order, when they have lasted as
// long as their id says, and those that begin with "user" for a reason of their own. Those that begin with "crash" end the program.
func ailing(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	outcome, err := crashing(ctx, job, sink)
	switch {
	case err != nil:
	case strings.HasPrefix(job.ID, "sick"):
		return protocol.Outcome{Error: gpuGone}, nil
	case strings.HasPrefix(job.ID, "user"):
		return protocol.Outcome{Error: "ValueError: CUDA out of memory"}, nil
	}
	return outcome, err
}

// The job ends as it said, and no other is lost with the program.
func TestSick_JobsOfTheProgram(t *testing.T) {
	tests := map[string]struct {
		jobs   []string
		failed map[string]string // what is in their errors
		again  []string          // these are started twice
	}{
		"a job that runs alone":         {[]string{"sick-1s"}, map[string]string{"sick-1s": gpuGone}, nil},
		"one beside it":                 {[]string{"sick-1s", "a-3s"}, map[string]string{"sick-1s": gpuGone}, []string{"a-3s"}},
		"two beside it":                 {[]string{"sick-1s", "a-3s", "b-3s"}, map[string]string{"sick-1s": gpuGone}, []string{"a-3s", "b-3s"}},
		"one beside it that streamed":   {[]string{"sick-1s", "stream-3s"}, map[string]string{"sick-1s": gpuGone, "stream-3s": "its GPU had failed in another job"}, nil},
		"one beside it that was done":   {[]string{"sick-2s", "a-1s"}, map[string]string{"sick-2s": gpuGone}, nil},
		"one beside it that fails then": {[]string{"sick-1s", "user-1001ms"}, map[string]string{"sick-1s": gpuGone, "user-1001ms": "ValueError"}, []string{"user-1001ms"}},
		"two of them":                   {[]string{"sick1-1s", "sick2-2s"}, map[string]string{"sick1-1s": gpuGone, "sick2-2s": gpuGone}, []string{"sick2-2s"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Concurrency: 4}, ailing, func(r *rig) {
				offer(r, tt.jobs...)
				r.start()
				for _, post := range r.results(time.Minute, len(tt.jobs)) {
					if want := tt.failed[post.Job]; want != "" {
						require.Contains(r, post.Body, want)
					} else {
						require.Contains(r, post.Body, "output", post.Job)
					}
				}
				for _, id := range tt.jobs {
					starts := 1
					for _, twice := range tt.again {
						starts += count(twice == id)
					}
					require.Equal(r, starts, r.handler.started(id), id)
				}
				offer(r, "next-1s")
				r.results(3*time.Second, len(tt.jobs)+1)
				require.GreaterOrEqual(r, len(r.programs()), 2)
				require.True(r, r.programs()[0].killed.Load())
				require.Empty(r, r.worker.ledger.ids())
				require.Empty(r, r.worker.crashers.crashes, "nobody is to blame")
			})
		})
	}
}

// Who meets the failure of the GPU in the same moment as another job may not be the one to blame for it.
func TestSick_TwoAtTheSameMoment(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, func(_ context.Context, job protocol.Job, _ protocol.Sink) (protocol.Outcome, error) {
		time.Sleep(time.Second)
		return protocol.Outcome{Error: gpuGone + " for " + job.ID}, nil
	}, func(r *rig) {
		offer(r, "a", "b")
		r.start()
		for _, post := range r.results(time.Minute, 2) {
			require.Contains(r, post.Body, gpuGone+" for "+post.Job)
		}
		require.Equal(r, 3, r.handler.started("a")+r.handler.started("b"), "the second is run again, alone")
	})
}

func TestSick_ChecksDecide(t *testing.T) {
	for name, failure := range map[string]error{"the GPU is fine": nil, "the GPU is broken": errors.New("gpu_memory: lost")} {
		t.Run(name, func(t *testing.T) {
			checks := 0
			cfg := Config{OnReady: func(_ context.Context, _ Handler, _ protocol.Ready, first bool) error {
				checks++
				if first {
					return nil
				}
				return failure
			}}
			bubble(t, cfg, ailing, func(r *rig) {
				offer(r, "sick-1s", "a-1s")
				r.start()
				if failure == nil {
					r.results(5*time.Second, 2)
					require.Equal(r, 2, checks)
					return
				}
				reason, err := r.end(5 * time.Second)
				require.Equal(r, HandlerExited, reason)
				require.ErrorIs(r, err, failure)
				require.Contains(r, r.results(0, 1)[0].Body, gpuGone, "what is owed is posted")
				require.Equal(r, 1, r.api.Waiting())
			})
		})
	}
}

// Crashes and GPU errors in a row, with no job done in between, end the worker; failures of users do not count.
func TestSick_Breaker(t *testing.T) {
	tests := map[string]struct {
		jobs []string
		ends bool
	}{
		"three":                         {[]string{"sick1-1s", "sick2-1s", "sick3-1s"}, true},
		"with crashes":                  {[]string{"sick1-1s", "crash2-1s", "sick3-1s"}, true},
		"with failures in between":      {[]string{"sick1-1s", "user1-1s", "crash2-1s", "user2-1s", "sick3-1s"}, true},
		"two":                           {[]string{"sick1-1s", "sick2-1s"}, false},
		"a job done in between":         {[]string{"sick1-1s", "crash2-1s", "a-1s", "sick3-1s", "sick4-1s"}, false},
		"one crash among many failures": {append(many("user", 50), "crash1-1s", "sick1-1s"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, ailing, func(r *rig) {
				offer(r, tt.jobs...)
				r.start()
				r.results(time.Hour, len(tt.jobs))
				if tt.ends {
					reason, err := r.end(time.Second)
					require.Equal(r, HandlerExited, reason)
					require.ErrorContains(r, err, "3 times in a row, with no job done in between: it could not use its GPU any more")
					return
				}
				offer(r, "b-1s")
				r.results(3*time.Second, len(tt.jobs)+1)
			})
		})
	}
}

// However many and fast.
func TestSick_FailuresOfUsersNeverCount(t *testing.T) {
	bubble(t, Config{Concurrency: 16}, ailing, func(r *rig) {
		offer(r, many("user", 1000)...)
		r.start()
		r.results(time.Hour, 1000)
		require.Len(r, r.programs(), 1)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}

func many(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%d-1ms", prefix, i)
	}
	return ids
}

// A client that writes the words into its prompt gets them back as output.
func TestSick_OutputsAreNotLookedAt(t *testing.T) {
	bubble(t, Config{}, func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
		return protocol.Outcome{Output: json.RawMessage(`"` + gpuGone + `"`)}, nil
	}, func(r *rig) {
		offer(r, "a", "b")
		r.start()
		r.results(time.Second, 2)
		require.Len(r, r.programs(), 1)
		require.Len(r, r.api.Accepted(apidouble.Done), 2)
	})
}

// A job that the program never had is no victim of its GPU: even one that has shown something, as it seems, is run again.
func TestSick_AJobThatTheProgramNeverHad(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		outcome, err := ailing(ctx, job, sink)
		if err != nil && job.ID == "stream-3s" {
			err = fmt.Errorf("%w: %w", protocol.ErrNotBegun, err)
		}
		return outcome, err
	}, func(r *rig) {
		offer(r, "sick-1s", "stream-3s")
		r.start()
		for _, post := range r.results(time.Minute, 2) {
			require.Equal(r, post.Job == "stream-3s", strings.Contains(post.Body, "output"), post.Body)
		}
		require.Equal(r, 2, r.handler.started("stream-3s"))
		require.Len(r, r.programs(), 2)
	})
}
