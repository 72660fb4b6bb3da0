package main

import (
	"fmt"
	"time"

	"runpodctl-worker/test/child"
)

// stop is how long an idle worker takes to end after the first signal. The platform holds polls for a shorter time here than
// it does in earnest, since the SDK waits for the end of one.
func (b *bench) stop() ([]comparison, error) {
	const hold = 3 * time.Second
	c := comparison{
		what: fmt.Sprintf("idle, polls held for %s: SIGTERM → exit", hold), unit: "s", rival: "SDK", bound: atMost(1), judged: byOurs,
	}
	for range b.reps {
		for _, side := range []struct {
			start launch
			into  *samples
		}{{b.ours, &c.ours}, {b.sdk, &c.theirs}} {
			r := newReferee(`{}`, 1, 0)
			r.hold = hold
			err := b.with(r, side.start, "noop.py", 1, func(p *child.Process) error {
				if err := r.awaitAll(p); err != nil {
					return err
				}
				time.Sleep(hold / 2) // until it waits for the next job
				took, err := term(p)
				*side.into = append(*side.into, took.Seconds())
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return []comparison{c}, nil
}

// term ends the process as a platform does and tells how long that took.
func term(p *child.Process) (time.Duration, error) {
	began := time.Now()
	code, err := p.Term()
	took := time.Since(began)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d after SIGTERM: %s", code, p.Tail())
	}
	return took, err
}
