package worker

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// HB-01
func TestHeartbeat_GoesOnWhileEverythingElseHangs(t *testing.T) {
	bubble(t, Config{Concurrency: 2, PingInterval: 2 * time.Second}, lasting, func(r *rig) {
		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Delay: 50 * time.Second, Usual: true} })
		offer(r, "a-60s", "b-1s")
		r.start()
		time.Sleep(61 * time.Second)
		pings := r.api.Calls(apidouble.Ping)
		require.Len(r, pings, 31)
		for _, gap := range gaps(pings) {
			require.Equal(r, 2*time.Second, gap)
		}
	})
}

// HB-06
func TestHeartbeat_WhileTheModelLoads(t *testing.T) {
	for early, pings := range map[bool]int{false: 0, true: 60} {
		t.Run(fmt.Sprintf("early=%t", early), func(t *testing.T) {
			bubble(t, Config{PingInterval: time.Second, PingEarly: early}, lasting, func(r *rig) {
				r.handler.startTime = 59500 * time.Millisecond
				r.start()
				time.Sleep(59400 * time.Millisecond)
				require.Len(r, r.api.Calls(apidouble.Ping), pings)
				require.Empty(r, r.api.Calls(apidouble.Take))
				time.Sleep(200 * time.Millisecond)
				require.Len(r, r.api.Calls(apidouble.Take), 1)
				time.Sleep(10 * time.Second)
				require.InDelta(r, pings+11, len(r.api.Calls(apidouble.Ping)), 1, "one heartbeat, whenever it began")
			})
		})
	}
	t.Run("for ever", func(t *testing.T) {
		bubble(t, Config{PingEarly: true, ReadyTimeout: time.Minute}, lasting, func(r *rig) {
			r.handler.startTime = time.Hour
			reason, err := r.start().end(time.Minute + time.Second)
			require.Equal(r, NotStarted, reason)
			require.ErrorContains(r, err, "the handler did not start: it was not ready after 1m0s")
			require.Empty(r, r.api.Calls(apidouble.Take))
		})
	})
}

// HB-01
func TestHeartbeat_KeepsToTheInterval(t *testing.T) {
	for _, interval := range []time.Duration{MinPingInterval, 1500 * time.Millisecond} {
		bubble(t, Config{PingInterval: interval}, lasting, func(r *rig) {
			r.api.On(apidouble.Ping, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Delay: interval / 3, Usual: true} })
			r.start()
			time.Sleep(20*interval + interval/2)
			require.Len(r, r.api.Calls(apidouble.Ping), 21)
			for _, gap := range gaps(r.api.Calls(apidouble.Ping)) {
				require.Equal(r, interval, gap)
			}
		})
	}
}

// An interval that would be a flood is not obeyed.
func TestHeartbeat_IntervalIsBounded(t *testing.T) {
	bubble(t, Config{PingInterval: time.Millisecond}, lasting, func(r *rig) {
		r.start()
		time.Sleep(20*MinPingInterval + MinPingInterval/2)
		require.Len(r, r.api.Calls(apidouble.Ping), 21)
	})
}

// HB-02
func TestHeartbeat_NamesWhatIsHeld(t *testing.T) {
	bubble(t, Config{Concurrency: 2, PingInterval: time.Second}, lasting, func(r *rig) {
		r.api.Script(apidouble.Done, apidouble.Reply{Status: 503}) // a is held on until it is delivered
		r.start()
		time.Sleep(1500 * time.Millisecond)
		offer(r, "a-2s") // 1.5 s to 3.5 s, delivered half a second later
		time.Sleep(time.Second)
		offer(r, "b-4s") // 2.5 s to 6.5 s
		time.Sleep(5500 * time.Millisecond)
		var named []string
		for _, c := range r.api.Calls(apidouble.Ping) {
			require.Equal(r, protocol.SDKVersion, c.Query.Get("runpod_version"))
			if ids, ok := c.Query["job_id"]; ok {
				require.NotEmpty(r, ids[0])
				named = append(named, ids[0])
			} else {
				named = append(named, "-")
			}
		}
		require.Equal(r, []string{"-", "a-2s", "a-2s,b-4s", "b-4s", "-"}, slices.Compact(named))
	})
}

// HB-04
func TestHeartbeat_SlowAndDeadServer(t *testing.T) {
	bubble(t, Config{PingInterval: time.Second}, lasting, func(r *rig) {
		began := time.Now()
		r.api.On(apidouble.Ping, func(apidouble.Call) *apidouble.Reply {
			switch past := time.Since(began); {
			case past < 30*time.Second:
				return &apidouble.Reply{Delay: time.Hour}
			case past < 50*time.Second:
				return &apidouble.Reply{Status: 500}
			}
			return nil
		})
		offer(r, "a-5s")
		r.start()
		time.Sleep(55 * time.Second)
		pings := r.api.Calls(apidouble.Ping)
		for _, gap := range gaps(pings) {
			require.GreaterOrEqual(r, gap, time.Second, "the next comes when the one before has timed out")
		}
		first := slices.IndexFunc(pings, func(c apidouble.Call) bool { return c.Status == 200 })
		require.LessOrEqual(r, pings[first].At.Sub(began), 51*time.Second, "within one interval")
		require.Len(r, r.api.Accepted(apidouble.Done), 1)
		require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelWarn)), 2)
	})
}

// The Hub's test runner gives no ping URL.
func TestHeartbeat_NoURL(t *testing.T) {
	bubble(t, Config{}, lasting, func(r *rig) {
		r.withoutURLs()
		offer(r, "a-1s")
		r.start()
		r.results(2*time.Second, 1)
		require.Len(r, lines(r.logs.atLeast(slog.LevelInfo), "No heartbeats"), 1)
	})
}
