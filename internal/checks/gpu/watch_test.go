package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/wire"
)

// The helper that watches is silent while others test, also after it has told of an event.
func TestTake_WatchIsNeverLate(t *testing.T) {
	for _, step := range []wire.Step{wire.NVMLWatch, wire.NVMLEvent} {
		t.Run(string(step), func(t *testing.T) {
			r := &run{}
			require.Equal(t, forever, r.take(wire.Line{Step: step, State: wire.StateOK}))
		})
	}
}
