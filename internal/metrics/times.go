package metrics

import (
	"slices"
	"time"
)

// times counts durations by their size.
type times struct {
	bounds []float64 // in seconds
	counts []int     // up to each bound and above the one before; the last is beyond all
	sum    float64
}

// Bounds that tell a quick call from a long one.
var (
	callBounds = []float64{.005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	runBounds  = []float64{.005, .025, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
)

func newTimes(bounds []float64) times {
	return times{bounds: bounds, counts: make([]int, len(bounds)+1)}
}

func (t *times) add(d time.Duration) {
	i, _ := slices.BinarySearch(t.bounds, d.Seconds()) // the first bound that is not below
	t.counts[i]++
	t.sum += d.Seconds()
}
