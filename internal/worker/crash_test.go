package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

var errSignal = errors.New("the program ended (signal 11); its last lines: boom")

// crashing ends the program in the jobs whose id begins with "crash", when they have lasted as long as their id says. In
// those with "stream" or "progress" in it clients have seen something before.
func crashing(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	if strings.Contains(job.ID, "stream") {
		if err := sink.Chunk(json.RawMessage(`1`)); err != nil {
			return protocol.Outcome{}, err
		}
	}
	if strings.Contains(job.ID, "progress") {
		sink.Progress(json.RawMessage(`1`))
	}
	outcome, err := lasting(ctx, job, sink)
	if err == nil && strings.HasPrefix(job.ID, "crash") {
		programOf(ctx).crash(errSignal)
		return protocol.Outcome{}, errSignal
	}
	return outcome, err
}

// HC-09
func TestCrash_JobsOfTheProgram(t *testing.T) {
	tests := map[string]struct {
		jobs   []string
		failed []string       // with the program's end as their error
		starts map[string]int // more than one
		lives  int
	}{
		"a job that runs alone":                {[]string{"crash-1s"}, []string{"crash-1s"}, nil, 2},
		"two beside it":                        {[]string{"crash-1s", "a-3s", "b-3s"}, []string{"crash-1s"}, map[string]int{"crash-1s": 2, "a-3s": 2, "b-3s": 2}, 3},
		"one beside it that streamed":          {[]string{"crash-1s", "stream-3s"}, []string{"crash-1s", "stream-3s"}, map[string]int{"crash-1s": 2}, 3},
		"one beside it that reported":          {[]string{"crash-1s", "progress-3s"}, []string{"crash-1s", "progress-3s"}, map[string]int{"crash-1s": 2}, 3},
		"the culprit streamed":                 {[]string{"crashstream-1s", "a-3s"}, []string{"crashstream-1s"}, map[string]int{"a-3s": 2}, 2},
		"all streamed":                         {[]string{"crashstream-1s", "stream-3s"}, []string{"crashstream-1s", "stream-3s"}, nil, 2},
		"two culprits, and one that ends well": {[]string{"crash-1s", "crash-2s", "a-3s"}, []string{"crash-1s", "crash-2s"}, map[string]int{"crash-1s": 2, "crash-2s": 2, "a-3s": 2}, 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Concurrency: 4, MaxRestarts: 10}, crashing, func(r *rig) {
				offer(r, tt.jobs...)
				r.start()
				var failed []string
				for _, post := range r.results(time.Minute, len(tt.jobs)) {
					if strings.Contains(post.Body, "signal 11") {
						failed = append(failed, post.Job)
					}
				}
				require.ElementsMatch(r, tt.failed, failed)
				for _, id := range tt.jobs {
					require.Equal(r, max(1, tt.starts[id]), r.handler.started(id), id)
				}
				offer(r, "next-1s")
				r.results(3*time.Second, len(tt.jobs)+1)
				require.Len(r, r.programs(), tt.lives)
				require.True(r, r.programs()[0].killed.Load(), "what is left of it is ended")
				require.Empty(r, r.worker.ledger.ids())
			})
		})
	}
}

// HC-09: the platform hears of it at once, although the next start takes long, and no job is taken meanwhile.
func TestCrash_IsToldBeforeTheNextStart(t *testing.T) {
	bubble(t, Config{}, crashing, func(r *rig) {
		r.handler.startTime = time.Minute
		offer(r, "crash-1s", "a-1s")
		r.start()
		require.Equal(r, "crash-1s", r.results(63*time.Second, 1)[0].Job)
		time.Sleep(57 * time.Second)
		require.Equal(r, 1, r.api.Waiting())
		require.Len(r, r.api.Calls(apidouble.Ping), 6, "it lives")
		r.results(10*time.Second, 2)
	})
}

// Those that are run again have the program to themselves; jobs that come on the open take wait.
func TestCrash_RunAgainAlone(t *testing.T) {
	var inside, most atomic.Int64
	bubble(t, Config{Concurrency: 4}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		n := inside.Add(1)
		defer inside.Add(-1)
		if programOf(ctx).startTime > 0 { // the second one
			most.Store(max(most.Load(), n))
		}
		return crashing(ctx, job, sink)
	}, func(r *rig) {
		r.reborn = func(h *fakeHandler) { h.startTime = 5 * time.Second }
		offer(r, "crashstream-1s", "a-2s", "b-2s")
		r.start()
		time.Sleep(3 * time.Second) // a program is starting, and the take that was open is still
		offer(r, "c-2s")
		for _, post := range r.results(time.Minute, 4) {
			require.Equal(r, post.Job == "crashstream-1s", strings.Contains(post.Body, "error"), post.Job)
		}
		require.Equal(r, int64(1), most.Load())
		require.Equal(r, 1, r.handler.started("c-2s"))
	})
}

func TestCrash_WhileIdle(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		var firsts []bool
		r.worker.cfg.OnReady = func(_ context.Context, h Handler, _ protocol.Ready, first bool) error {
			require.Same(r, r.programs()[len(firsts)], h)
			firsts = append(firsts, first)
			return nil
		}
		r.start()
		time.Sleep(time.Second)
		r.handler.crash(nil) // exit code 0 is an end too
		time.Sleep(time.Second)
		offer(r, "a-1s")
		r.results(2*time.Second, 1)
		require.Len(r, r.programs(), 2)
		require.Equal(r, []bool{true, false}, firsts)
	})
}

// A job that the program never had is not to blame for its end, however often that happens to it, and is for the next one.
func TestCrash_BeforeTheProgramHadTheJob(t *testing.T) {
	for name, drain := range map[string]bool{"while jobs are taken": false, "while the worker drains": true} {
		t.Run(name, func(t *testing.T) {
			var died atomic.Int64
			bubble(t, Config{MaxCrashes: 1}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
				if job.ID == "a-1s" && died.Add(1) <= 2 {
					time.Sleep(time.Second)
					programOf(ctx).crash(errSignal)
					return protocol.Outcome{}, fmt.Errorf("%w: %w", protocol.ErrNotBegun, errSignal)
				}
				return lasting(ctx, job, sink)
			}, func(r *rig) {
				offer(r, "a-1s")
				r.start()
				time.Sleep(500 * time.Millisecond)
				if drain {
					r.drain()
				}
				require.NotContains(r, r.results(time.Minute, 1)[0].Body, "error")
				require.Equal(r, 3, r.handler.started("a-1s"))
				require.Len(r, r.programs(), 3)
			})
		})
	}
}

// Who has to run alone still has to when the program died before it had the job.
func TestCrash_SuspectedBeforeTheProgramHadTheJob(t *testing.T) {
	var inside, crowded, tries atomic.Int64
	onDisk(t, Config{Concurrency: 4}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		inside.Add(1)
		defer inside.Add(-1)
		if job.ID != "suspect-5s" {
			return lasting(ctx, job, sink)
		}
		defer func() { crowded.Add(inside.Load() - 1) }()
		if tries.Add(1) == 2 { // the first try was in the worker that was killed
			programOf(ctx).crash(errSignal)
			return protocol.Outcome{}, fmt.Errorf("%w: %w", protocol.ErrNotBegun, errSignal)
		}
		return lasting(ctx, job, sink)
	}, func(r *rig, d *disk) {
		offer(r, "suspect-5s")
		r.start()
		r.await(time.Minute, "the start", func() bool { return tries.Load() == 1 })
		r.kill(d)
		r.reborn = func(h *fakeHandler) { h.startTime = time.Second }
		offer(r, "suspect-5s", "a-9s", "b-9s")
		r.start()
		r.results(time.Minute, 3)
		require.Zero(r, crowded.Load())
		require.EqualValues(r, 3, tries.Load())
	})
}

func TestCrash_TooOftenInARow(t *testing.T) {
	t.Run("jobs", func(t *testing.T) {
		bubble(t, Config{}, crashing, func(r *rig) {
			offer(r, "crash1-1s", "crash2-1s", "a-1s", "crash3-1s", "crash4-1s", "crash5-1s", "b-1s")
			r.start()
			reason, err := r.end(time.Minute)
			require.Equal(r, HandlerExited, reason)
			require.ErrorIs(r, err, errSignal)
			require.ErrorContains(r, err, "3 times in a row")
			require.Len(r, r.api.Accepted(apidouble.Done), 6, "what is owed is posted")
			require.Equal(r, 1, r.api.Waiting())
			require.Len(r, r.programs(), 5)
		})
	})
	t.Run("those that wait to be run again are released", func(t *testing.T) {
		bubble(t, Config{Concurrency: 4}, crashing, func(r *rig) {
			offer(r, "crash1-1s", "crash2-1s", "crash3-1s", "crash4-1s")
			r.start()
			reason, err := r.end(time.Minute)
			require.Equal(r, HandlerExited, reason)
			var unsettled *UnsettledError
			require.ErrorAs(r, err, &unsettled)
			require.Len(r, unsettled.Jobs, 2)
			require.Len(r, r.api.Accepted(apidouble.Done), 2)
		})
	})
	t.Run("idle", func(t *testing.T) {
		bubble(t, Config{MaxRestarts: 2}, lasting, func(r *rig) {
			r.reborn = func(h *fakeHandler) { h.crash(errSignal) }
			r.start()
			time.Sleep(time.Second)
			r.handler.crash(nil)
			reason, err := r.end(time.Second)
			require.Equal(r, "handler exited", reason.String())
			require.ErrorContains(r, err, "2 times in a row")
		})
	})
}

func TestCrash_DoesNotStartAgain(t *testing.T) {
	tests := map[string]struct {
		cfg    Config
		reborn func(*fakeHandler)
		want   string
	}{
		"it dies":  {Config{}, func(h *fakeHandler) { h.startError = errors.New("no memory") }, "no memory"},
		"it hangs": {Config{ReadyTimeout: 5 * time.Second}, func(h *fakeHandler) { h.startTime = time.Hour }, "not ready after 5s"},
		"a check fails": {Config{OnReady: func(_ context.Context, _ Handler, _ protocol.Ready, first bool) error {
			if first {
				return nil
			}
			return errors.New("check failed")
		}}, nil, "check failed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, tt.cfg, crashing, func(r *rig) {
				r.reborn = tt.reborn
				offer(r, "crash-1s")
				r.start()
				reason, err := r.end(10 * time.Second)
				require.Equal(r, HandlerExited, reason)
				require.ErrorContains(r, err, "could not be started again")
				require.ErrorContains(r, err, tt.want)
				r.results(0, 1)
				require.Equal(r, int64(1), r.programs()[1].stops.Load())
			})
		})
	}
}

// A draining worker starts the program again only for jobs that it holds.
func TestCrash_WhileDraining(t *testing.T) {
	t.Run("one is to be run again", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2}, crashing, func(r *rig) {
			offer(r, "crashstream-2s", "a-3s")
			r.start()
			time.Sleep(time.Second)
			r.drain()
			reason, err := r.end(time.Minute)
			require.NoError(r, err)
			require.Equal(r, Drained, reason)
			require.Contains(r, r.results(0, 2)[1].Body, "done")
		})
	})
	t.Run("none is", func(t *testing.T) {
		bubble(t, Config{}, crashing, func(r *rig) {
			r.api.Script(apidouble.Done, apidouble.Reply{Status: 500}) // it takes a moment to settle it
			offer(r, "crash-2s")
			r.start()
			time.Sleep(time.Second)
			r.drain()
			_, err := r.end(time.Minute)
			require.NoError(r, err)
			r.results(0, 1)
			require.Len(r, r.programs(), 1)
		})
	})
	t.Run("the signal comes while it starts", func(t *testing.T) {
		bubble(t, Config{}, crashing, func(r *rig) {
			r.reborn = func(h *fakeHandler) { h.startTime = time.Hour }
			offer(r, "crash-1s")
			r.start()
			time.Sleep(time.Minute)
			r.drain()
			reason, err := r.end(time.Second)
			require.NoError(r, err)
			require.Equal(r, Drained, reason)
		})
	})
	t.Run("the second signal comes while a job waits", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2}, crashing, func(r *rig) {
			r.reborn = func(h *fakeHandler) { h.startTime = time.Hour }
			offer(r, "crashstream-1s", "a-3s")
			r.start()
			time.Sleep(time.Minute)
			r.abort()
			_, err := r.end(time.Second)
			require.ErrorContains(r, err, "1 job(s) left unsettled: a-3s")
		})
	})
}

// JP-12
func TestCrash_CulpritIsNotRunAgain(t *testing.T) {
	for _, limit := range []int{0, 2, -1} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			bubble(t, Config{MaxCrashes: limit, MaxRestarts: 10}, crashing, func(r *rig) {
				r.start()
				for i := range 4 {
					offer(r, "crash-1s")
					r.results(3*time.Second, i+1)
					time.Sleep(time.Second)
				}
				starts := limit
				switch limit {
				case 0:
					starts = defaultMaxCrashes
				case -1:
					starts = 4
				}
				require.Equal(r, starts, r.handler.started("crash-1s"))
				barred := 0
				for _, post := range r.results(0, 4) {
					barred += strings.Count(post.Body, crasherText)
				}
				require.Equal(r, 4-starts, barred)
			})
		})
	}
}

// A job that is stopped while it waits to be run again holds nobody up.
func TestCrash_StoppedWhileItWaits(t *testing.T) {
	bubble(t, Config{Concurrency: 4}, crashing, func(r *rig) {
		r.reborn = func(h *fakeHandler) { h.startTime = 10 * time.Second }
		offer(r, "crashstream-1s", "a-3s", "b-3s")
		r.start()
		time.Sleep(2 * time.Second)
		r.api.StopJobs("a-3s", "b-3s")
		offer(r, "c-1s")
		r.results(14*time.Second, 2)
		require.Empty(r, r.api.Posts(apidouble.Done, "a-3s"))
	})
}

// A stopped job counts among those that may have done it.
func TestCrash_BesideAStoppedJob(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		if job.ID == "bad" {
			<-ctx.Done()
			time.Sleep(time.Second)
			programOf(ctx).crash(errSignal)
			return protocol.Outcome{}, errSignal
		}
		return lasting(ctx, job, sink)
	}, func(r *rig) {
		offer(r, "bad", "a-5s")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("bad")
		require.Contains(r, r.results(time.Minute, 1)[0].Body, "done")
		require.Equal(r, 2, r.handler.started("a-5s"))
	})
}

// A handler that waits for room in the outbox when its program dies does not keep the next from starting.
func TestCrash_WhileAStreamIsHeldUp(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, func(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		if job.ID != "stream" {
			return crashing(ctx, job, sink)
		}
		for ctx.Err() == nil {
			if err := sink.Chunk(json.RawMessage(`1`)); err != nil {
				return protocol.Outcome{}, err
			}
		}
		return protocol.Outcome{}, errSignal
	}, func(r *rig) {
		r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Delay: 20 * time.Second, Usual: true} })
		offer(r, "stream", "crash-1s")
		r.start()
		time.Sleep(time.Second + returnTime + 500*time.Millisecond)
		require.Len(r, r.programs(), 2)
		r.await(10*time.Minute, "both have failed", func() bool { return len(r.api.Accepted(apidouble.Done)) == 2 })
		require.Equal(r, 2, r.handler.started("crash-1s"))
		require.Equal(r, 1, r.handler.started("stream"))
	})
}

func TestResized_BetweenJobs(t *testing.T) {
	bubble(t, Config{Concurrency: 4}, lasting, func(r *rig) {
		r.handler.limit.Store(1)
		r.start()
		time.Sleep(time.Second)
		r.handler.limit.Store(0)
		r.handler.resized <- struct{}{}
		time.Sleep(time.Second)
		offer(r, "a-5s")
		time.Sleep(time.Second)
		require.Equal(r, "3", r.api.Calls(apidouble.Take)[1].Query.Get("batch_size"))
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}
