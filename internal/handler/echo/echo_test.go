package echo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/echo"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker"
)

var _ worker.Handler = (*echo.Handler)(nil)

func TestEcho(t *testing.T) {
	h := echo.New()
	ready, err := h.Start(t.Context())
	require.NoError(t, err)
	require.Equal(t, "echo (built in)", ready.Name)
	require.Zero(t, h.Limit())
	for _, input := range []string{`{"a": 1.50, "é":"<&>"}`, `null`, `[]`, `0`, `""`, `12345678901234567890`} {
		job, err := protocol.ParseJob([]byte(`{"id":"j", "input":` + input + `, "x":1}`))
		require.NoError(t, err)
		out, err := h.Handle(t.Context(), job, nil)
		require.NoError(t, err)
		require.Equal(t, protocol.Outcome{Output: []byte(input)}, out)
	}
	_, err = h.Handle(t.Context(), protocol.Job{Raw: []byte("no")}, nil)
	require.Error(t, err)
	select {
	case <-h.Exited():
		t.Fatal("an echo never ends")
	default:
	}
	require.NoError(t, h.Err())
	require.NoError(t, h.Stop(t.Context()))
}
