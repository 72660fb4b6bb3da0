package metrics

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimes_ABoundIsWithinItsBucket(t *testing.T) {
	for _, tt := range []struct {
		name string
		d    time.Duration
		want []int
	}{
		{"nothing", 0, []int{1, 0, 0}},
		{"the first bound", time.Second, []int{1, 0, 0}},
		{"just above it", time.Second + 1, []int{0, 1, 0}},
		{"the last bound", time.Minute, []int{0, 1, 0}},
		{"beyond all", time.Hour, []int{0, 0, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			times := newTimes([]float64{1, 60})
			times.add(tt.d)
			require.Equal(t, tt.want, times.counts)
			require.InDelta(t, tt.d.Seconds(), times.sum, 1e-9)
		})
	}
}
