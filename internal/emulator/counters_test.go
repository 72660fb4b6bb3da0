package emulator_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
)

// Whatever happens in whatever order, every job that came is somewhere in the counters, once.
func TestCountersAddUp(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			c, random := newClock(), rand.New(rand.NewPCG(seed, 0))
			r := newRig(t, emulator.Options{Now: c.now, TakeHold: time.Nanosecond, SweepEvery: time.Hour, Execution: time.Hour, Retention: 100 * time.Hour})
			var ids []string
			var came, gone int // gone are those that end without a counter: cancelled and purged
			some := func() string { return ids[random.IntN(len(ids))] }
			for range 400 {
				switch action := random.IntN(10); {
				case action < 3 || len(ids) == 0:
					ids = append(ids, r.run(`{"input":1}`))
					came++
				case action < 6:
					r.take(fmt.Sprint("w", random.IntN(3)))
				case action < 8:
					body := []string{`{"output":1}`, `{"error":"boom"}`, `{"error":1}`, `{"status":"IN_PROGRESS","output":1}`}[random.IntN(4)]
					r.done(fmt.Sprint("w", random.IntN(3)), some(), body)
				case action == 8:
					if id := some(); random.IntN(2) == 0 {
						code, before := r.call("GET", "/status/"+id, "")
						r.call("POST", "/cancel/"+id, "")
						if code == 200 && (strings.Contains(before, `IN_QUEUE`) || strings.Contains(before, `IN_PROGRESS`)) {
							gone++
						}
					} else if code, _ := r.call("POST", "/retry/"+id, ""); code == 200 {
						came++ // it failed, which stays counted, and comes anew
					}
				default:
					if random.IntN(8) == 0 {
						var purged struct{ Removed int }
						require.NoError(t, json.Unmarshal([]byte(r.ok("POST", "/purge-queue", "")), &purged))
						gone += purged.Removed
					}
				}
				var h struct {
					Jobs struct{ Completed, Failed, InProgress, InQueue, Retried int }
				}
				require.NoError(t, json.Unmarshal([]byte(r.ok("GET", "/health", "")), &h))
				require.Equal(t, came, h.Jobs.Completed+h.Jobs.Failed+h.Jobs.InProgress+h.Jobs.InQueue+gone, "%+v", h.Jobs)
			}
		})
	}
}
