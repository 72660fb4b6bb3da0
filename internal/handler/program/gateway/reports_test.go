package gateway

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

func parsed(id string) protocol.Job { return protocol.Job{ID: id, Raw: raw(id)} }

func TestDone(t *testing.T) {
	for _, tt := range []struct {
		name string
		done server.Done
		want protocol.Outcome
	}{
		{"output", server.Done{Output: json.RawMessage(`{"a": 1.50}`)}, protocol.Outcome{Output: json.RawMessage(`{"a": 1.50}`)}},
		{"none", server.Done{}, protocol.Outcome{}},
		{"error", server.Done{Output: json.RawMessage(`1`), Error: "bad"}, protocol.Outcome{Output: json.RawMessage(`1`), Error: "bad"}},
		{"refresh", server.Done{StopPod: true}, protocol.Outcome{Refresh: true}},
		{"stream", server.Done{Output: json.RawMessage(`[]`), Stream: true}, protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			within(t, func(r *rig) {
				a := r.handle("a")
				require.ErrorIs(t, r.Done(r.ctx, "w", "a", tt.done), protocol.ErrUnknownJob, "nobody has taken it")
				r.take(sdkIdle, 1, "a")
				require.NoError(t, r.Done(r.ctx, "w", "a", tt.done))
				require.False(t, r.running(a))
				require.NoError(t, a.err)
				require.Equal(t, tt.want, a.out)
				require.Equal(t, tt.done.StopPod, r.Leaves())
				require.ErrorIs(t, r.Done(r.ctx, "w", "a", tt.done), protocol.ErrUnknownJob, "a second time")
			})
		})
	}
}

func TestStream(t *testing.T) {
	t.Run("in order", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			r.take(sdkIdle, 1, "a")
			for n := range 3 {
				require.NoError(t, r.Chunk(r.ctx, "w", "a", json.RawMessage(strconv.Itoa(n))))
			}
			require.NoError(t, r.done("a"))
			require.False(t, r.running(a))
			require.ErrorIs(t, r.Chunk(r.ctx, "w", "a", json.RawMessage(`3`)), protocol.ErrUnknownJob)
			require.Equal(t, []string{"0", "1", "2"}, a.sink.chunks)
		})
	})
	t.Run("an item is lost", func(t *testing.T) {
		within(t, func(r *rig) {
			a := r.handle("a")
			r.take(sdkIdle, 1, "a")
			a.sink.full = true
			require.ErrorIs(t, r.Chunk(r.ctx, "w", "a", json.RawMessage(`1`)), protocol.ErrJobSettled)
			r.stopped("a")
			require.True(t, r.running(a))
			require.NoError(t, r.done("a"))
			require.False(t, r.running(a))
			require.ErrorIs(t, a.err, errFull, "the stream is not whole")
		})
	})
}

func TestProgress(t *testing.T) {
	within(t, func(r *rig) {
		a := r.handle("a")
		require.NoError(t, r.Progress(r.ctx, "w", "a", json.RawMessage(`0`)))
		r.take(sdkIdle, 1, "a")
		require.NoError(t, r.Progress(r.ctx, "w", "a", json.RawMessage(`{"p": 1}`)))
		require.NoError(t, r.Progress(r.ctx, "w", "a", nil))
		require.NoError(t, r.done("a"))
		require.False(t, r.running(a))
		require.NoError(t, r.Progress(r.ctx, "w", "a", json.RawMessage(`2`)), "late progress is normal")
		require.Equal(t, []string{`{"p": 1}`}, a.sink.progress)
	})
}

func TestPing(t *testing.T) {
	within(t, func(r *rig) {
		require.NoError(t, r.Ping(r.ctx, "w", server.Ping{Jobs: []string{"a"}}))
		require.Empty(t, r.faulted())
		require.NoError(t, r.Ping(r.ctx, "w", server.Ping{Unhealthy: true, Check: "check_gpu", Reason: "RuntimeError: none"}))
		require.Equal(t, []error{&UnhealthyError{Check: "check_gpu", Reason: "RuntimeError: none"}}, r.faulted())
		require.EqualError(t, r.faulted()[0], "it said that it is unhealthy: check_gpu: RuntimeError: none")
	})
}
