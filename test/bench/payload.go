package main

import (
	"fmt"
	"time"

	"runpodctl-worker/test/proctree"

	"runpodctl-worker/test/child"
)

const (
	payloadBytes = 8_000_000
	payloadSlots = 16
	streamItems  = 100
)

// large is outputs of 8 MB: how many there are in a second, and what the worker holds of them at most, counted in payloads of
// the jobs that are on their way. The handler is no part of that: it is another process, or for the SDK the same.
func (b *bench) large() ([]comparison, error) {
	what := fmt.Sprintf("outputs of 8 MB, concurrency %d", payloadSlots)
	rate := comparison{what: what, unit: "jobs/s", rival: "SDK", bound: atLeast(3)}
	growth := comparison{what: what + ": peak RSS over idle, for each job", unit: "payloads", rival: "SDK, handler inside", bound: atMost(3), judged: byOurs}
	for range b.reps {
		for _, side := range []struct {
			start        launch
			span         time.Duration
			rate, growth *samples
		}{
			{b.ours, 3 * time.Second, &rate.ours, &growth.ours},
			{b.sdk, 8 * time.Second, &rate.theirs, &growth.theirs},
		} {
			r := newReferee(fmt.Sprintf(`{"bytes":%d}`, payloadBytes), 0, 0)
			r.gate = make(chan struct{})
			err := b.with(r, side.start, "large_async.py", payloadSlots, func(p *child.Process) error {
				idle, err := proctree.Alone(p.Pid())
				if err != nil {
					return err
				}
				close(r.gate)
				perSecond, err := r.rate(p, &r.done, side.span)
				if err != nil {
					return err
				}
				if bytes, jobs := r.bytes.Load(), r.done.Load(); bytes < jobs*payloadBytes {
					return fmt.Errorf("%d results have %d bytes", jobs, bytes)
				}
				peak, err := proctree.Peak(p.Pid())
				if err != nil {
					return err
				}
				*side.rate = append(*side.rate, perSecond)
				*side.growth = append(*side.growth, float64(peak-idle.RSS)/(payloadSlots*payloadBytes))
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return []comparison{rate, growth}, nil
}

// stream is items of streams that are posted one by one, in order.
func (b *bench) stream() ([]comparison, error) {
	c := comparison{
		what: fmt.Sprintf("streams of %d items, concurrency %d", streamItems, payloadSlots), unit: "items/s",
		rival: "SDK", bound: atLeast(10),
	}
	for range b.reps {
		for _, side := range []struct {
			start launch
			span  time.Duration
			into  *samples
		}{{b.ours, 3 * time.Second, &c.ours}, {b.sdk, 8 * time.Second, &c.theirs}} {
			perSecond, err := b.itemRate(side.start, side.span)
			if err != nil {
				return nil, err
			}
			*side.into = append(*side.into, perSecond)
		}
	}
	return []comparison{c}, nil
}

// itemRate counts items over a span, and demands that each stream is in order.
func (b *bench) itemRate(start launch, span time.Duration) (float64, error) {
	items, err := newItems()
	if err != nil {
		return 0, err
	}
	defer items.close()
	r := newReferee(fmt.Sprintf(`{"items":%d}`, streamItems), 0, 0)
	r.more = []string{items.env()}
	var perSecond float64
	err = b.with(r, start, "items_async.py", payloadSlots, func(p *child.Process) (err error) {
		perSecond, err = r.rate(p, &items.count, span)
		if err == nil && items.disorder.Load() > 0 {
			err = fmt.Errorf("%d of %d items are out of order", items.disorder.Load(), items.count.Load())
		}
		return err
	})
	return perSecond, err
}
