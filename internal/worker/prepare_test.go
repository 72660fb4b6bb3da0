package worker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// Preparations are made once, before the first program; heartbeats that begin early do not wait for them, and the time for loading
// does not count them.
func TestPrepare(t *testing.T) {
	prepared, programs := 0, []int{}
	var r *rig
	cfg := Config{PingEarly: true, PingInterval: time.Second, ReadyTimeout: 30 * time.Second, Prepare: func(ctx context.Context) {
		prepared++
		programs = append(programs, len(r.programs()))
		sleep(ctx, time.Minute)
	}}
	bubble(t, cfg, lasting, func(of *rig) {
		r = of
		r.handler.startTime = 20 * time.Second
		r.start()
		time.Sleep(78500 * time.Millisecond)
		require.Len(r, r.api.Calls(apidouble.Ping), 79)
		require.Empty(r, r.api.Calls(apidouble.Take))
		time.Sleep(2 * time.Second)
		require.NotEmpty(r, r.api.Calls(apidouble.Take))
		r.handler.crash(nil)
		time.Sleep(time.Minute)
		require.Len(r, r.programs(), 2)
	})
	require.Equal(t, 1, prepared)
	require.Equal(t, []int{0}, programs)
}

// A worker that is told to stop meanwhile starts no program.
func TestPrepare_IsEndedByASignal(t *testing.T) {
	bubble(t, Config{Prepare: func(ctx context.Context) { <-ctx.Done() }}, lasting, func(r *rig) {
		r.start()
		time.Sleep(time.Minute)
		r.drain()
		<-r.ended
		require.NoError(r, r.err)
		require.Equal(r, Drained, r.reason)
		require.Empty(r, r.programs())
		require.Empty(r, r.api.Calls(apidouble.Take))
	})
}
