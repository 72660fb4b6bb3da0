package worker

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// Wherever the worker itself goes wrong, it says so in its log, ends its program, and what it owes stays where it is.
func TestMistake_EndsTheWorker(t *testing.T) {
	for name, observer := range map[string]Observer{
		"the heartbeat":         {Pinged: func(error) { panic("out of order") }},
		"the loop of takes":     {Took: func(int, time.Duration, error) { panic("out of order") }},
		"the delivery of a job": {Ended: func(protocol.Job, End, time.Duration) { panic("out of order") }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Observer: observer}, lasting, func(r *rig) {
				r.api.Offer(`{"id":"job-1s","input":1}`)
				r.start()
				select {
				case <-r.ended:
				case <-time.After(time.Minute):
					require.Fail(t, "the worker goes on")
				}
				require.ErrorIs(t, r.err, errMistake)
				said := r.logs.atLeast(slog.LevelError)
				require.Len(t, said, 1)
				require.Contains(t, said[0], "The worker ends. error=a mistake in this program: out of order, at worker.")
				require.NotZero(t, r.handler.stops.Load(), "its program has ended")
			})
		})
	}
}
