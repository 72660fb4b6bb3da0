package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

func times(n int, reply apidouble.Reply) []apidouble.Reply {
	replies := make([]apidouble.Reply, n)
	for i := range replies {
		replies[i] = reply
	}
	return replies
}

// RD-02
func TestDeliver_WorthAnotherTry(t *testing.T) {
	page := map[string]string{"Content-Type": "text/html"}
	tests := map[string]struct {
		script   []apidouble.Reply
		posts    int // how many are made
		accepted int
	}{
		"RD-02a 503 six times":        {times(6, apidouble.Reply{Status: 503}), 7, 1},
		"RD-02b reset three times":    {times(3, apidouble.Reply{Drop: true}), 4, 1},
		"RD-02c 401 for ever":         {times(1000, apidouble.Reply{Status: 401}), maxDenials, 0},
		"RD-02c 403 for ever":         {times(1000, apidouble.Reply{Status: 403}), maxDenials, 0},
		"RD-02c 404":                  {times(1000, apidouble.Reply{Status: 404}), 1, 0},
		"RD-02c 413 whatever is sent": {times(1000, apidouble.Reply{Status: 413}), 2, 0},
		"404 page once":               {times(1, apidouble.Reply{Status: 404, Header: page}), 2, 1},
		"404 page for ever":           {times(1000, apidouble.Reply{Status: 404, Header: page}), 2, 0},
		"409":                         {times(1000, apidouble.Reply{Status: 409}), 1, 0},
		"410":                         {times(1000, apidouble.Reply{Status: 410}), 1, 0},
		"422":                         {times(1000, apidouble.Reply{Status: 422}), 1, 0},
		"any 2xx settles":             {times(1, apidouble.Reply{Status: 204}), 1, 1},
		"a page with 200 settles":     {times(1, apidouble.Reply{Body: "<html>", Header: page}), 1, 1},
		"401 while a key is rotated":  {times(2, apidouble.Reply{Status: 401}), 3, 1},
		"redirect for ever":           {times(1000, apidouble.Reply{Status: 302, Header: map[string]string{"Location": "/x"}}), maxDenials, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, output(`1`), func(r *rig) {
				r.api.Script(apidouble.Done, tt.script...)
				offer(r, "j")
				r.start()
				time.Sleep(20 * time.Minute)
				require.Len(r, r.api.Calls(apidouble.Done), tt.posts)
				require.Len(r, r.api.Accepted(apidouble.Done), tt.accepted)
				require.Empty(r, r.worker.ledger.ids(), "the job has an end")
			})
		})
	}
}

// RD-02a
func TestDeliver_WaitsGrowWithJitter(t *testing.T) {
	var all [][]time.Duration
	for range 3 {
		bubble(t, Config{}, output(`1`), func(r *rig) {
			r.api.Script(apidouble.Done, times(6, apidouble.Reply{Status: 503})...)
			offer(r, "j")
			r.start()
			r.results(5*time.Minute, 1)
			g := gaps(r.api.Calls(apidouble.Done))
			require.Less(r, g[0], g[2])
			require.Less(r, g[2], g[4])
			all = append(all, g)
		})
	}
	require.NotEqual(t, all[0], all[1])
	require.NotEqual(t, all[1], all[2])
}

// RD-02d
func TestDeliver_RetryAfterIsObeyed(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.Script(apidouble.Done, apidouble.Reply{Status: 429, Header: map[string]string{"Retry-After": "3"}},
			apidouble.Reply{Status: 503, Header: map[string]string{"Retry-After": "30"}})
		offer(r, "j")
		r.start()
		r.results(time.Minute, 1)
		g := gaps(r.api.Calls(apidouble.Done))
		require.GreaterOrEqual(r, g[0], 3*time.Second)
		require.GreaterOrEqual(r, g[1], 30*time.Second)
	})
}

// A date is as good as seconds, and a wait that is longer than what is left of the budget is cut to that.
func TestDeliver_RetryAfterIsBounded(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		at := time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)
		r.api.Script(apidouble.Done, apidouble.Reply{Status: 429, Header: map[string]string{"Retry-After": at}})
		offer(r, "j")
		r.start()
		r.results(time.Minute, 1)
		require.InDelta(r, 20, gaps(r.api.Calls(apidouble.Done))[0].Seconds(), 2)

		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply {
			return &apidouble.Reply{Status: 503, Header: map[string]string{"Retry-After": "999999"}}
		})
		began := time.Now()
		offer(r, "k")
		r.await(2*resultBudget, "the end of k", func() bool { return len(lines(r.logs.atLeast(slog.LevelError), "Failed to return job results.")) > 0 })
		require.InDelta(r, resultBudget.Minutes(), time.Since(began).Minutes(), 15)
		require.Len(r, r.api.Posts(apidouble.Done, "k"), 7, "one an hour, and the last at the end")
	})
}

// RD-02c: a key that is refused is a matter for people, who read it once a minute.
func TestDeliver_DenialIsLoud(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 401} })
		offer(r, "j")
		r.start()
		time.Sleep(4 * time.Minute)
		require.Equal(r, []string{"j"}, r.worker.ledger.ids(), "the result is kept")
		said := lines(r.logs.atLeast(slog.LevelError), "Failed to return job results, trying again.")
		require.GreaterOrEqual(r, len(said), 2)
		require.LessOrEqual(r, len(said), 5, "at most once a minute")
		require.Contains(r, said[0], "RUNPOD_AI_API_KEY")
		r.api.On(apidouble.Done, nil)
		r.results(2*time.Minute, 1)
	})
}

// RD-02e
func TestDeliver_SurvivesAnOutage(t *testing.T) {
	bubble(t, Config{}, output(`"`+strings.Repeat("x", 2*largeBody)+`"`), func(r *rig) {
		outage(r, 3*time.Minute)
		offer(r, "j")
		r.start()
		time.Sleep(time.Second)
		require.Contains(r, r.results(6*time.Minute, 1)[0].Body, "output")
	})
}

// outage drops every post for a while.
func outage(r *rig, d time.Duration) {
	until := time.Now().Add(d)
	r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply {
		if time.Now().Before(until) {
			return &apidouble.Reply{Drop: true}
		}
		return nil
	})
}

// RD-01
func TestDeliver_RefusedResultFailsTheJob(t *testing.T) {
	bubble(t, Config{}, output(`"`+strings.Repeat("x", 2000)+`"`), func(r *rig) {
		r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
			if len(c.Body) > 1024 {
				return &apidouble.Reply{Status: 400, Body: `{"detail":"exceeded max body size"}`}
			}
			return nil
		})
		offer(r, "j")
		r.start()
		post := r.results(time.Second, 1)[0]
		require.Len(r, r.api.Calls(apidouble.Done), 2)
		var body struct{ Error string }
		require.NoError(r, json.Unmarshal([]byte(post.Body), &body))
		require.Contains(r, body.Error, "400")
		require.Contains(r, body.Error, "exceeded max body size")
		require.Contains(r, body.Error, "2013 bytes")
	})
}

// HC-10
func TestDeliver_TooLargeResultIsNotSent(t *testing.T) {
	bubble(t, Config{MaxResult: 1000}, output(`"`+strings.Repeat("x", 2000)+`"`), func(r *rig) {
		offer(r, "j")
		r.start()
		post := r.results(time.Second, 1)[0]
		require.Len(r, r.api.Calls(apidouble.Done), 1)
		require.Contains(r, post.Body, "2013 bytes, the limit is 1000")
	})
}

// A proxy that cuts the connection of a body it finds too large must not hold the job for hours.
func TestDeliver_LargeBodyThatIsAlwaysCut(t *testing.T) {
	bubble(t, Config{}, output(`"`+strings.Repeat("x", 2*largeBody)+`"`), func(r *rig) {
		r.api.On(apidouble.Done, func(c apidouble.Call) *apidouble.Reply {
			if len(c.Body) > largeBody {
				return &apidouble.Reply{Drop: true}
			}
			return nil
		})
		offer(r, "j")
		r.start()
		post := r.results(20*time.Minute, 1)[0]
		require.Contains(r, post.Body, "error")
		require.Contains(r, post.Body, fmt.Sprint(2*largeBody+13))
	})
}

// RD-07
func TestDeliver_PollingPausesWhileNothingCanBeDelivered(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, lasting, func(r *rig) {
		outage(r, 2*time.Minute)
		for i := range 20 {
			offer(r, fmt.Sprintf("j%d-100ms", i))
		}
		r.start()
		for range 119 {
			time.Sleep(time.Second)
			require.LessOrEqual(r, len(r.worker.ledger.ids()), 4, "two in the outbox, two in their slots")
		}
		require.GreaterOrEqual(r, r.api.Waiting(), 16)
		r.results(3*time.Minute, 20)
		require.Empty(r, lines(r.logs.atLeast(slog.LevelError), ""))
	})
}

// RD-07
func TestDeliver_FailingResultKeepsItsSlot(t *testing.T) {
	bubble(t, Config{Concurrency: 2}, lasting, func(r *rig) {
		outage(r, time.Minute)
		offer(r, "a-1s", "b-20s")
		r.start()
		time.Sleep(2 * time.Second)
		offer(r, "c-1s") // goes to the take that was open when the delivery of a failed
		time.Sleep(2 * time.Second)
		offer(r, "d-1s")
		time.Sleep(10 * time.Second)
		require.Equal(r, 1, r.api.Waiting(), "b runs, a keeps the other slot")
		r.results(3*time.Minute, 4)
	})
}

// A drain does not end the delivery.
func TestDeliver_GoesOnAfterTheSignal(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		outage(r, time.Minute)
		offer(r, "j")
		r.start()
		time.Sleep(time.Second)
		r.drain()
		reason, err := r.end(3 * time.Minute)
		require.NoError(r, err)
		require.Equal(r, Drained, reason)
		require.Len(r, r.api.Accepted(apidouble.Done), 1)
	})
}

func TestDeliver_BudgetIsFinite(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 500} })
		offer(r, "j")
		r.start()
		time.Sleep(resultBudget + time.Minute)
		require.Empty(r, r.worker.ledger.ids())
		require.NotEmpty(r, lines(r.logs.atLeast(slog.LevelError), "Failed to return job results."))
	})
}

func TestHandler_Failures(t *testing.T) {
	tests := map[string]handleFunc{
		"boom": func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
			return protocol.Outcome{Error: "boom"}, nil
		},
		"the program died of signal 9": func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
			return protocol.Outcome{}, fmt.Errorf("the program died of signal 9")
		},
		"context canceled": func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
			return protocol.Outcome{}, context.Canceled // although nobody cancelled it
		},
		"panicked: oh": func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) { panic("oh") },
	}
	for want, handle := range tests {
		t.Run(want, func(t *testing.T) {
			bubble(t, Config{}, handle, func(r *rig) {
				offer(r, "j")
				r.start()
				require.Contains(r, r.results(time.Second, 1)[0].Body, want)
				synctest.Wait()
				require.Empty(r, r.worker.ledger.ids())
			})
		})
	}
}
