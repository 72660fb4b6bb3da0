package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// SR-01
func TestDrain_RunningJobIsFinished(t *testing.T) {
	bubble(t, Config{PingInterval: time.Second}, lasting, func(r *rig) {
		offer(r, "a-8s", "b-8s")
		r.start()
		time.Sleep(time.Second)
		r.drain()
		reason, err := r.end(8 * time.Second)
		require.NoError(r, err)
		require.Equal(r, Drained, reason)
		require.Len(r, r.api.Calls(apidouble.Take), 1)
		done := r.results(0, 1)[0]
		require.Less(r, r.endedAt.Sub(done.At), time.Second)
		pings := r.api.Calls(apidouble.Ping)
		require.Less(r, done.At.Sub(pings[len(pings)-1].At), 1100*time.Millisecond)
		require.False(r, r.handler.killed.Load(), "it has time to stop")
		require.Equal(r, int64(1), r.handler.stops.Load())
	})
}

// SR-02
func TestDrain_JobThatSlipsInIsRun(t *testing.T) {
	bubble(t, Config{Concurrency: 4}, lasting, func(r *rig) {
		r.start()
		time.Sleep(time.Second)
		r.drain()
		time.Sleep(200 * time.Millisecond)
		offer(r, "a-5s", "b-5s", "c-5s", "d-5s", "e-5s")
		_, err := r.end(6 * time.Second)
		require.NoError(r, err)
		require.Len(r, r.api.Accepted(apidouble.Done), 4)
		require.Len(r, r.api.Calls(apidouble.Take), 1, "no second take")
		require.Equal(r, 1, r.api.Waiting())
	})
}

// SR-04
func TestDrain_IdleWorkerEndsAtOnce(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		r.start()
		time.Sleep(10 * time.Second)
		signal := time.Now()
		r.drain()
		_, err := r.end(time.Minute)
		require.NoError(r, err)
		require.LessOrEqual(r, r.endedAt.Sub(signal), defaultStopLinger+100*time.Millisecond)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn), "nothing alarming about a normal stop")
	})
}

func TestDrain_WhileBackingOff(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		r.api.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply {
			return &apidouble.Reply{Status: 429, Header: map[string]string{"Retry-After": "600"}}
		})
		r.start()
		time.Sleep(time.Second)
		r.drain()
		_, err := r.end(time.Second)
		require.NoError(r, err)
	})
}

func TestDrain_GracePeriod(t *testing.T) {
	bubble(t, Config{GracePeriod: 3 * time.Second}, lasting, func(r *rig) {
		offer(r, "a-1h")
		r.start()
		time.Sleep(time.Second)
		r.drain()
		_, err := r.end(4 * time.Second)
		var unsettled *UnsettledError
		require.ErrorAs(r, err, &unsettled)
		require.Equal(r, []string{"a-1h"}, unsettled.Jobs)
		require.Empty(r, r.api.Calls(apidouble.Done), "it is released")
		require.Equal(r, int64(1), r.handler.stops.Load())
		require.True(r, r.handler.killed.Load(), "its time is over")
		require.Empty(r, lines(r.logs.atLeast(slog.LevelWarn), "A handler did not come back"))
	})
}

// The second signal.
func TestAbort_EndsAtOnce(t *testing.T) {
	t.Run("a job is running", func(t *testing.T) {
		bubble(t, Config{}, lasting, func(r *rig) {
			offer(r, "a-1h")
			r.start()
			time.Sleep(time.Second)
			r.drain()
			time.Sleep(time.Second)
			r.abort()
			_, err := r.end(time.Second)
			require.ErrorContains(r, err, "1 job(s) left unsettled: a-1h")
		})
	})
	t.Run("a result is undelivered", func(t *testing.T) {
		bubble(t, Config{}, output(`1`), func(r *rig) {
			outage(r, time.Hour)
			offer(r, "j")
			r.start()
			time.Sleep(time.Second)
			r.abort()
			_, err := r.end(time.Second)
			require.ErrorContains(r, err, "1 job(s) left unsettled: j")
		})
	})
	t.Run("idle", func(t *testing.T) {
		bubble(t, Config{}, output(`1`), func(r *rig) {
			r.start()
			time.Sleep(time.Second)
			r.abort()
			reason, err := r.end(time.Second)
			require.NoError(r, err)
			require.Equal(r, Drained, reason)
		})
	})
	t.Run("a handler does not come back", func(t *testing.T) {
		release := make(chan struct{})
		bubble(t, Config{}, func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
			<-release
			return protocol.Outcome{}, nil
		}, func(r *rig) {
			release = make(chan struct{}) // a channel of this bubble
			offer(r, "j")
			r.start()
			time.Sleep(time.Second)
			r.abort()
			_, err := r.end(time.Second)
			require.ErrorContains(r, err, "left unsettled")
			close(release)
		})
	})
}

func TestStart_Fails(t *testing.T) {
	bubble(t, Config{OnReady: func(context.Context, Handler, protocol.Ready, bool) error { return errors.New("check failed") }}, lasting, func(r *rig) {
		reason, err := r.start().end(time.Second)
		require.Equal(r, NotStarted, reason)
		require.ErrorContains(r, err, "check failed")
		require.Empty(r, r.api.Calls(apidouble.Take))
		require.Equal(r, int64(1), r.handler.stops.Load())
	})
}

func TestStart_SignalWhileLoading(t *testing.T) {
	bubble(t, Config{PingEarly: true, PingInterval: time.Second}, lasting, func(r *rig) {
		r.handler.startTime = time.Hour
		r.start()
		time.Sleep(2500 * time.Millisecond)
		r.drain()
		reason, err := r.end(time.Second)
		require.NoError(r, err)
		require.Equal(r, Drained, reason)
		require.Len(r, r.api.Calls(apidouble.Ping), 3)
	})
}

// refreshing asks for a fresh worker in the jobs whose id begins with "refresh"; an id with "fail" in it fails.
func refreshing(ctx context.Context, job protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
	outcome, err := lasting(ctx, job, sink)
	outcome.Refresh = strings.HasPrefix(job.ID, "refresh")
	if strings.Contains(job.ID, "fail") {
		outcome.Error = "failed"
	}
	return outcome, err
}

// SR-08
func TestRefresh(t *testing.T) {
	for _, first := range []string{"refresh-1s", "refreshfail-1s"} {
		t.Run(first, func(t *testing.T) {
			bubble(t, Config{Concurrency: 2}, refreshing, func(r *rig) {
				offer(r, first, "b-4s", "c-1s")
				r.start()
				reason, err := r.end(5 * time.Second)
				require.NoError(r, err)
				require.Equal(r, Refreshed, reason)
				posts := r.results(0, 2)
				require.Equal(r, first, posts[0].Job)
				require.NotContains(r, posts[0].Body, "stopPod")
				require.Equal(r, "b-4s", posts[1].Job)
				require.Contains(r, posts[1].Body, `"stopPod":true`)
				require.Equal(r, 1, r.api.Waiting(), "no take after the job that asked")
			})
		})
	}
	t.Run("alone", func(t *testing.T) {
		bubble(t, Config{}, refreshing, func(r *rig) {
			offer(r, "refresh-1s", "b-1s")
			r.start()
			_, err := r.end(3 * time.Second)
			require.NoError(r, err)
			require.Contains(r, r.results(0, 1)[0].Body, `"stopPod":true`)
		})
	})
	t.Run("the last waits for deliveries that fail", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2}, refreshing, func(r *rig) {
			r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
				if c.Job == "refresh-1s" && len(r.api.Posts(apidouble.Done, c.Job)) < 5 {
					return &apidouble.Reply{Status: 503}
				}
				return nil
			})
			offer(r, "refresh-1s", "b-2s")
			r.start()
			_, err := r.end(time.Minute)
			require.NoError(r, err)
			posts := r.results(0, 2)
			require.Equal(r, "refresh-1s", posts[0].Job)
			require.Contains(r, posts[1].Body, "stopPod")
		})
	})
	t.Run("both at once, deliveries fail", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2}, refreshing, func(r *rig) {
			r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
				if len(r.api.Posts(apidouble.Done, c.Job)) < 3 {
					return &apidouble.Reply{Status: 503}
				}
				return nil
			})
			offer(r, "refresh-1s", "refreshtoo-1s")
			r.start()
			_, err := r.end(time.Minute)
			require.NoError(r, err)
			posts := r.results(0, 2)
			require.NotContains(r, posts[0].Body, "stopPod")
			require.Contains(r, posts[1].Body, "stopPod")
		})
	})
	t.Run("a job comes on the open take", func(t *testing.T) {
		bubble(t, Config{Concurrency: 2}, refreshing, func(r *rig) {
			offer(r, "refresh-1s")
			r.start()
			time.Sleep(1200 * time.Millisecond)
			offer(r, "b-2s")
			_, err := r.end(5 * time.Second)
			require.NoError(r, err)
			posts := r.results(0, 2)
			require.NotContains(r, posts[0].Body, "stopPod")
			require.Contains(r, posts[1].Body, "stopPod")
		})
	})
	t.Run("always", func(t *testing.T) {
		bubble(t, Config{Refresh: true}, lasting, func(r *rig) {
			offer(r, "a-1s", "b-1s")
			r.start()
			reason, err := r.end(3 * time.Second)
			require.NoError(r, err)
			require.Equal(r, Refreshed, reason)
			require.Contains(r, r.results(0, 1)[0].Body, "stopPod")
		})
	})
}

// SR-09
func TestStops_OneJobIsStopped(t *testing.T) {
	bubble(t, Config{Concurrency: 3}, lasting, func(r *rig) {
		offer(r, "a-5s", "b-5s", "c-5s", "d-1s")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("unknown", "b-5s")
		time.Sleep(100 * time.Millisecond)
		require.Equal(r, 1, r.handler.started("d-1s"), "the slot is free")
		r.results(10*time.Second, 3)
		require.Empty(r, r.api.Posts(apidouble.Done, "b-5s"))
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}

// SR-09
func TestStops_OddAnswers(t *testing.T) {
	for _, body := range []string{`{"jobsToStop":["unknown"]}`, `{"jobsToStop":[1,null]}`, `{"jobsToStop":"x"}`, `"x"`, `{}`, `<html>`, ``} {
		t.Run(body, func(t *testing.T) {
			bubble(t, Config{}, lasting, func(r *rig) {
				r.api.On(apidouble.Stop, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Body: body} })
				offer(r, "a-50s")
				r.start()
				time.Sleep(10 * time.Second)
				require.LessOrEqual(r, len(r.api.Calls(apidouble.Stop)), 20)
				time.Sleep(30 * time.Second)
				require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelWarn)), 1)
				r.results(20*time.Second, 1)
			})
		})
	}
}

// A result that waits to be delivered is not wanted any more either.
func TestStops_UndeliveredResult(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		outage(r, time.Minute)
		offer(r, "j")
		r.start()
		time.Sleep(5 * time.Second)
		r.api.StopJobs("j")
		time.Sleep(2 * time.Minute)
		require.Empty(r, r.api.Accepted(apidouble.Done))
		require.Empty(r, r.worker.ledger.ids())
	})
}

func TestStops_EndsTheStream(t *testing.T) {
	bubble(t, Config{}, func(ctx context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		for ctx.Err() == nil {
			if err := sink.Chunk(json.RawMessage(`1`)); err != nil {
				return protocol.Outcome{}, err
			}
		}
		return protocol.Outcome{}, nil
	}, func(r *rig) {
		r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
			return &apidouble.Reply{Delay: 50 * time.Millisecond, Usual: true}
		})
		offer(r, "j")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("j")
		time.Sleep(time.Second)
		chunks := len(r.api.Calls(apidouble.Stream))
		time.Sleep(time.Minute)
		require.Len(r, r.api.Calls(apidouble.Stream), chunks)
		require.Empty(r, r.api.Calls(apidouble.Done))
		require.Empty(r, r.worker.ledger.ids())
	})
}

// A job that the platform has stopped is owed to nobody, although its handler does not come back.
func TestStops_LeavesNothingUnsettled(t *testing.T) {
	var release chan struct{} // made inside the bubble
	bubble(t, Config{}, func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
		<-release
		return protocol.Outcome{}, nil
	}, func(r *rig) {
		release = make(chan struct{})
		offer(r, "j")
		r.start()
		time.Sleep(time.Second)
		r.api.StopJobs("j")
		time.Sleep(time.Second)
		r.drain()
		r.abort()
		time.Sleep(time.Second)
		<-r.ended
		require.NoError(r, r.err)
		close(release)
	})
}
