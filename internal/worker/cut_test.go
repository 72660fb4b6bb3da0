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

func TestJobTimeout(t *testing.T) {
	const late = `{"error":"job timeout: the handler was not done after 5s"}`
	t.Run("the handler stops", func(t *testing.T) {
		bubble(t, Config{JobTimeout: 5 * time.Second}, lasting, func(r *rig) {
			offer(r, "a-4s", "b-1h", "c-4s")
			r.start()
			posts := r.results(14*time.Second, 3)
			require.Equal(r, late, posts[1].Body)
			require.Contains(r, posts[2].Body, "done")
			require.Len(r, r.programs(), 1)
		})
	})
	t.Run("the handler goes on", func(t *testing.T) {
		bubble(t, Config{JobTimeout: 5 * time.Second}, stubborn, func(r *rig) {
			offer(r, "stuck-1h", "a-1s")
			r.start()
			require.Equal(r, late, r.results(5*time.Second+time.Millisecond, 1)[0].Body, "it is said at once")
			time.Sleep(minOverdue - time.Second)
			require.Equal(r, 1, r.api.Waiting(), "its slot is busy")
			r.results(3*time.Second, 2)
			require.Len(r, r.programs(), 2)
			require.Len(r, r.api.Posts(apidouble.Done, "stuck-1h"), 1)
		})
	})
	t.Run("the handler is a little late", func(t *testing.T) {
		bubble(t, Config{JobTimeout: 5 * time.Second}, stubborn, func(r *rig) {
			offer(r, "stuck-6s")
			r.start()
			time.Sleep(time.Minute)
			require.Equal(r, late, r.results(0, 1)[0].Body)
			require.Len(r, r.programs(), 1)
		})
	})
	t.Run("a stream ends with it", func(t *testing.T) {
		bubble(t, Config{JobTimeout: 5 * time.Second}, counting(1000, nil), func(r *rig) {
			r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
				return &apidouble.Reply{Delay: time.Second, Usual: true}
			})
			offer(r, "j")
			r.start()
			post := r.results(6*time.Second, 1)[0]
			require.Equal(r, late, post.Body)
			require.Equal(r, "true", post.Query.Get("isStream"))
			time.Sleep(time.Minute)
			chunks := r.api.Calls(apidouble.Stream)
			require.False(r, chunks[len(chunks)-1].At.After(post.At))
		})
	})
	t.Run("the time of a job starts when it does", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2, JobTimeout: 5 * time.Second}, crashing, func(r *rig) {
			r.reborn = func(h *fakeHandler) { h.startTime = time.Minute }
			offer(r, "crashstream-3s", "a-4s")
			r.start()
			require.Contains(r, r.results(2*time.Minute, 2)[1].Body, "done")
		})
	})
	t.Run("a failure to tell takes no slot from others for ever", func(t *testing.T) {
		bubble(t, Config{JobTimeout: 5 * time.Second}, lasting, func(r *rig) {
			outage(r, time.Minute)
			offer(r, "a-1h", "b-1s")
			r.start()
			r.results(3*time.Minute, 2)
			time.Sleep(time.Second)
			l := r.worker.ledger
			l.mu.Lock()
			defer l.mu.Unlock()
			require.Equal(r, 1, l.slots-l.running-l.unsent-l.failing)
		})
	})
	t.Run("it is stopped while that is told", func(t *testing.T) {
		bubble(t, Config{JobTimeout: 5 * time.Second}, stubborn, func(r *rig) {
			outage(r, time.Hour)
			offer(r, "stuck-1h")
			r.start()
			time.Sleep(8 * time.Second)
			require.Equal(r, []string{"stuck-1h"}, r.worker.ledger.ids())
			r.api.StopJobs("stuck-1h")
			time.Sleep(time.Second)
			require.Empty(r, r.worker.ledger.ids())
		})
	})
}

// SR-05, SR-07
func TestFailOnKill(t *testing.T) {
	const cut = `{"error":"the worker was stopped before the job had ended"}`
	ends := map[string]func(*rig){
		"grace period":  func(r *rig) { r.drain(); time.Sleep(3 * time.Second) },
		"second signal": func(r *rig) { r.drain(); time.Sleep(time.Second); r.abort() },
		"at once":       func(r *rig) { r.abort() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Concurrency: 2, GracePeriod: 3 * time.Second, FailOnKill: true}, stubborn, func(r *rig) {
				offer(r, "a-1h", "stuck-1h")
				r.start()
				time.Sleep(time.Second)
				end(r)
				reason, err := r.end(100 * time.Millisecond)
				require.Equal(r, Drained, reason)
				require.EqualError(r, err, "2 job(s) failed because the worker was stopped: a-1h, stuck-1h")
				for _, post := range r.results(0, 2) {
					require.Equal(r, cut, post.Body)
				}
				require.True(r, r.handler.killed.Load())
			})
		})
	}
	t.Run("a job that waits for a program", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2, FailOnKill: true}, crashing, func(r *rig) {
			r.reborn = func(h *fakeHandler) { h.startTime = time.Hour }
			offer(r, "crashstream-1s", "a-3s")
			r.start()
			time.Sleep(5 * time.Second)
			r.abort()
			_, err := r.end(time.Second)
			require.ErrorContains(r, err, "1 job(s) failed")
			require.Equal(r, cut, r.results(0, 2)[1].Body)
		})
	})
	t.Run("a result that is there is posted", func(t *testing.T) {
		bubble(t, Config{FailOnKill: true}, output(`1`), func(r *rig) {
			r.api.Script(apidouble.Done, apidouble.Reply{Status: 429, Header: map[string]string{"Retry-After": "600"}})
			offer(r, "j")
			r.start()
			time.Sleep(time.Second)
			r.abort()
			_, err := r.end(100 * time.Millisecond)
			require.NoError(r, err)
			require.Equal(r, `{"output":1}`, r.results(0, 1)[0].Body)
		})
	})
	t.Run("the platform does not answer", func(t *testing.T) {
		bubble(t, Config{FailOnKill: true}, lasting, func(r *rig) {
			r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Delay: time.Hour} })
			offer(r, "a-1h")
			r.start()
			time.Sleep(time.Second)
			r.abort()
			signal := time.Now()
			_, err := r.end(2 * time.Second)
			require.ErrorContains(r, err, "1 job(s) left unsettled: a-1h")
			require.LessOrEqual(r, r.endedAt.Sub(signal), farewellTime+100*time.Millisecond)
			require.Empty(r, lines(r.logs.atLeast(slog.LevelWarn), "A handler did not come back"))
		})
	})
}

// SR-08: who tells the platform to recycle the worker, however the jobs end.
func TestRefresh_LastPost(t *testing.T) {
	tests := map[string]struct {
		cfg     Config
		jobs    []string
		stopped string   // a second after the start
		posts   []string // in order; the last carries stopPod unless the last job was stopped
		told    bool
	}{
		"one asks, the other ends later":       {Config{}, []string{"refresh-2s", "b-4s"}, "", []string{"refresh-2s", "b-4s"}, true},
		"the one that asks is the last":        {Config{}, []string{"refresh-4s", "b-2s"}, "", []string{"b-2s", "refresh-4s"}, true},
		"it fails and asks":                    {Config{}, []string{"refreshfail-2s", "b-4s"}, "", []string{"refreshfail-2s", "b-4s"}, true},
		"it fails, asks and is the last":       {Config{}, []string{"refreshfail-4s", "b-2s"}, "", []string{"b-2s", "refreshfail-4s"}, true},
		"the last fails":                       {Config{}, []string{"refresh-2s", "fail-4s"}, "", []string{"refresh-2s", "fail-4s"}, true},
		"both ask":                             {Config{}, []string{"refresh-2s", "refresh-4s"}, "", []string{"refresh-2s", "refresh-4s"}, true},
		"another was stopped before":           {Config{}, []string{"refresh-4s", "b-2s"}, "b-2s", []string{"refresh-4s"}, true},
		"another was stopped and goes on":      {Config{}, []string{"refresh-4s", "stuck-1h"}, "stuck-1h", []string{"refresh-4s"}, true},
		"the last is stopped":                  {Config{}, []string{"refresh-500ms", "b-4s"}, "b-4s", []string{"refresh-500ms"}, false},
		"always, and the only one was stopped": {Config{Refresh: true}, []string{"b-4s"}, "b-4s", nil, false},
		"the last is too late":                 {Config{JobTimeout: 3 * time.Second}, []string{"refresh-2s", "stuck-1h"}, "", []string{"refresh-2s", "stuck-1h"}, true},
		"always, and the only one is too late": {Config{JobTimeout: 3 * time.Second, Refresh: true}, []string{"b-1h"}, "", []string{"b-1h"}, true},
		"always, too late, and it goes on":     {Config{JobTimeout: 3 * time.Second, Refresh: true}, []string{"stuck-6s"}, "", []string{"stuck-6s"}, true},
		"always, and the program dies":         {Config{Refresh: true}, []string{"crash-2s"}, "", []string{"crash-2s"}, true},
		"the program dies, the rest run again": {Config{}, []string{"refresh-500ms", "crashstream-2s", "b-4s"}, "", []string{"refresh-500ms", "crashstream-2s", "b-4s"}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Concurrency = len(tt.jobs)
			bubble(t, tt.cfg, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
				if strings.HasPrefix(job.ID, "stuck") || strings.HasPrefix(job.ID, "crash") {
					return stubborn(ctx, job, sink)
				}
				return refreshing(ctx, job, sink)
			}, func(r *rig) {
				offer(r, tt.jobs...)
				r.start()
				time.Sleep(time.Second)
				if tt.stopped != "" {
					r.api.StopJobs(tt.stopped)
				}
				reason, err := r.end(20 * time.Second)
				require.NoError(r, err)
				require.Equal(r, Refreshed, reason)
				var posts []string
				for i, post := range r.api.Accepted(apidouble.Done) {
					posts = append(posts, post.Job)
					require.Equal(r, tt.told && i == len(tt.posts)-1, strings.Contains(post.Body, `"stopPod":true`), post.Job)
				}
				require.Equal(r, tt.posts, posts)
			})
		})
	}
}
