package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker/apidouble"
)

// sleeper is the clock of a process that can be frozen: meanwhile nobody sees it move.
type sleeper struct {
	mu     sync.Mutex
	frozen time.Time
}

func (s *sleeper) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.frozen.IsZero() {
		return s.frozen
	}
	return time.Now()
}

func (s *sleeper) set(frozen time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
}

// freeze stops the clock of a worker for a while, as the worker sees it, and its connections die.
func (s *sleeper) freeze(network *apidouble.Blackhole, d time.Duration) {
	s.set(time.Now())
	network.Swallow()
	time.Sleep(d)
	s.set(time.Time{})
}

// withSleeper gives a rig that has not started a clock and a network that can be frozen.
func withSleeper(r *rig) (*sleeper, *apidouble.Blackhole) {
	s, network := &sleeper{}, &apidouble.Blackhole{Through: r.api.Dial}
	r.worker.clock = newClock(s.now)
	platform := client.New(client.Config{URLs: r.api.Templates(), WorkerID: "w1", PingInterval: r.worker.cfg.PingInterval, Dial: network.Dial})
	r.Cleanup(platform.Close)
	r.worker.platform = platform
	return s, network
}

func TestClock_CountsTimeAwake(t *testing.T) {
	const long = 5 * time.Minute
	for name, after := range map[string]func(time.Time) time.Time{
		"the process was stopped":   func(began time.Time) time.Time { return began.Add(long) },
		"the machine was suspended": func(began time.Time) time.Time { return began.Round(0).Add(long) }, // no monotonic reading
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			now := began
			c := newClock(func() time.Time { return now })
			now = began.Add(4 * time.Second)
			require.Equal(t, 4*time.Second, c.elapsed(), "a busy machine")
			require.Empty(t, c.froze)
			now = after(now)
			require.LessOrEqual(t, c.elapsed(), 4*time.Second+pulse)
			require.Equal(t, long, <-c.froze)
			c.elapsed()
			require.Empty(t, c.froze, "it is told once")
		})
	}
	t.Run("the wall clock is set back", func(t *testing.T) {
		began := time.Now().Round(0)
		now := began
		c := newClock(func() time.Time { return now })
		now = began.Add(-time.Hour)
		require.LessOrEqual(t, c.elapsed(), time.Duration(0))
		now = now.Add(time.Second)
		c.elapsed()
		require.Empty(t, c.froze)
	})
}

// A freeze of five minutes trips no time limit: each is as late as the freeze was long.
func TestThaw_NoLimitTrips(t *testing.T) {
	const frozen = 5 * time.Minute
	tests := map[string]struct {
		cfg   Config
		begin func(*rig)
		early time.Duration // after the freeze began, without the freeze: nothing has happened
		after func(*rig)    // four seconds later it has
	}{
		"job timeout": {
			Config{JobTimeout: time.Minute},
			func(r *rig) { offer(r, "a-1h"); r.start() },
			48 * time.Second, func(r *rig) { require.Contains(r, r.results(0, 1)[0].Body, "job timeout") },
		},
		"grace period": {
			Config{GracePeriod: time.Minute},
			func(r *rig) { offer(r, "a-1h"); r.start(); time.Sleep(time.Second); r.drain() },
			48 * time.Second, func(r *rig) { _, err := r.end(time.Second); require.ErrorContains(r, err, "a-1h") },
		},
		"ready timeout": {
			Config{ReadyTimeout: time.Minute},
			func(r *rig) { r.handler.startTime = time.Hour; r.start() },
			48 * time.Second, func(r *rig) { _, err := r.end(time.Second); require.ErrorContains(r, err, "not ready") },
		},
		"overdue": {
			Config{},
			func(r *rig) { offer(r, "stuck-1h"); r.start(); time.Sleep(9 * time.Second); r.api.StopJobs("stuck-1h") },
			6 * time.Second, func(r *rig) { require.Len(r, r.programs(), 2) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, tt.cfg, stubborn, func(r *rig) {
				clock, network := withSleeper(r)
				began := time.Now()
				tt.begin(r)
				time.Sleep(10*time.Second - time.Since(began))
				clock.freeze(network, frozen)
				time.Sleep(tt.early)
				synctest.Wait()
				require.Empty(r, r.api.Calls(apidouble.Done))
				require.Len(r, r.programs(), 1)
				require.False(r, closed(r.ended))
				time.Sleep(4 * time.Second)
				tt.after(r)
			})
		})
	}
}

// After a thaw the worker is back at once, although its connections have died without a word.
func TestThaw_BackAtOnce(t *testing.T) {
	bubble(t, Config{PingInterval: 80 * time.Second}, lasting, func(r *rig) {
		clock, network := withSleeper(r)
		r.start()
		time.Sleep(10 * time.Second)
		clock.set(time.Now())
		network.Swallow()
		time.Sleep(65 * time.Second) // shorter than a poll may take
		clock.set(time.Time{})
		thaw := time.Now()
		offer(r, "a-1s")
		r.results(4*time.Second, 1)
		pings := r.api.Calls(apidouble.Ping)
		require.LessOrEqual(r, pings[len(pings)-1].At.Sub(thaw), pulse+100*time.Millisecond)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn), "nothing is wrong")
		require.Len(r, lines(r.logs.atLeast(slog.LevelInfo), "The worker was frozen"), 1)
		offer(r, "b-1h")
		time.Sleep(time.Second)
		r.api.StopJobs("b-1h")
		time.Sleep(time.Second)
		require.Empty(r, r.worker.ledger.ids(), "the stop channel is open again")
	})
}

func TestThaw_NoFreezeBeforeTheStart(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		time.Sleep(time.Hour)
		r.start()
		time.Sleep(time.Minute)
		require.Empty(r, lines(r.logs.atLeast(slog.LevelInfo), "The worker was frozen"))
	})
}

// What the platform was asked to be spared before the freeze is over.
func TestThaw_EndsBackOffs(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		clock, network := withSleeper(r)
		wait := map[string]string{"Retry-After": "3600"}
		r.api.Script(apidouble.Done, apidouble.Reply{Status: 503, Header: wait})
		offer(r, "j")
		r.start()
		time.Sleep(time.Second)
		r.api.On(apidouble.Take, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: 429, Header: wait} })
		time.Sleep(30 * time.Second) // the open take has ended, and the next one was refused
		takes := len(r.api.Calls(apidouble.Take))
		clock.freeze(network, time.Minute)
		r.api.On(apidouble.Take, nil)
		r.results(3*time.Second, 1)
		r.await(time.Second, "a take", func() bool { return len(r.api.Calls(apidouble.Take)) > takes })
	})
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace := delays(time.Second, time.Minute, 2)
		never, thawed := make(chan struct{}), make(chan struct{})
		close(thawed)
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("over"))

		began := time.Now()
		require.True(t, pause(t.Context(), never, pace, 10*time.Second))
		require.Equal(t, 10*time.Second, time.Since(began))
		for range 10 {
			pace.NextBackOff()
		}
		require.True(t, pause(t.Context(), thawed, pace, time.Hour))
		require.False(t, pause(ended, never, pace, time.Hour))
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Less(t, pace.NextBackOff(), 3*time.Second, "it has begun anew")
	})
}
