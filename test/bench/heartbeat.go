package main

import (
	"fmt"
	"time"

	"runpodctl-worker/test/child"
)

// heartbeat is the longest silence of a worker whose job burns every core and floods standard output.
func (b *bench) heartbeat() ([]comparison, error) {
	const interval, burn = time.Second, 8 * time.Second
	c := comparison{what: "largest gap between pings, every core busy", unit: "intervals", rival: "SDK", bound: atMost(1.5), judged: byOurs}
	for _, side := range []struct {
		start launch
		into  *samples
	}{{b.ours, &c.ours}, {b.sdk, &c.theirs}} {
		r := newReferee(fmt.Sprintf(`{"seconds":%d}`, burn/time.Second), 1, 0)
		r.more = []string{fmt.Sprint("RUNPOD_PING_INTERVAL=", interval.Milliseconds())}
		err := b.with(r, side.start, "spin.py", 1, func(p *child.Process) error {
			err := r.awaitAll(p)
			*side.into = append(*side.into, float64(r.silence())/float64(interval))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return []comparison{c}, nil
}

// silence is the longest time without a ping, in nanoseconds, from the first job to now.
func (r *referee) silence() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, longest := r.trace["j1"].taken, int64(0)
	for _, ping := range append(r.pings, monotonic()) {
		longest = max(longest, ping-last)
		last = max(last, ping)
	}
	return longest
}
