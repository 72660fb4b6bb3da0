package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"syscall"
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
				time.Sleep(10 * time.Minute)
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
		require.Equal(r, 16, r.api.Waiting())
		r.results(3*time.Minute, 20)
		require.Empty(r, lines(r.logs.atLeast(slog.LevelError), ""))
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

func TestPatience_Again(t *testing.T) {
	var p patience
	for range maxResets - 1 {
		require.True(t, p.again(syscall.ECONNRESET, largeBody))
	}
	require.False(t, p.again(syscall.EPIPE, largeBody))
	require.True(t, refused(p.verdict(syscall.EPIPE)))

	p = patience{}
	for range 3 * maxResets {
		require.True(t, p.again(syscall.ECONNRESET, 100), "a small body is not the reason")
		require.True(t, p.again(syscall.ECONNREFUSED, largeBody), "nobody saw the body")
	}
	require.False(t, p.again(protocol.ErrNoURL, 1))
	require.False(t, refused(context.Canceled))
	require.True(t, unwelcome(&protocol.StatusError{Code: http.StatusGone}))
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
