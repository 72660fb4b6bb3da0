package main

import (
	"fmt"
	"slices"
	"time"

	"runpodctl-worker/test/child"
)

// startup is the time from the start of the process to its first take.
func (b *bench) startup() ([]comparison, error) {
	c := comparison{what: "process start → first job-take", unit: "s", rival: "SDK", bound: atMost(1.0 / 8)}
	for range b.reps + 2 {
		for _, side := range []struct {
			start launch
			into  *samples
		}{{b.ours, &c.ours}, {b.sdk, &c.theirs}} {
			took, err := b.firstTake(side.start)
			if err != nil {
				return nil, err
			}
			*side.into = append(*side.into, took)
		}
	}
	return []comparison{c}, nil
}

// firstTake is how many seconds it takes a contestant to get there.
func (b *bench) firstTake(start launch) (seconds float64, err error) {
	r, began := newReferee(`{}`, 1, 0), time.Now()
	err = b.with(r, start, "noop.py", 1, func(*child.Process) error {
		seconds = time.Since(began).Seconds()
		return nil
	})
	return seconds, err
}

// throughput is no-op jobs per second. The server of all three is the referee of this program, which always
// has a job and keeps no state, so the bare loop shows what the machine can do at all.
func (b *bench) throughput() ([]comparison, error) {
	var lines []comparison
	for _, row := range []struct {
		file             string
		concurrency      int
		overSDK, ofTheGo float64
	}{
		{"noop.py", 1, 1000, 0.6},
		{"noop_async.py", 16, 150, 0.5},
	} {
		what := fmt.Sprintf("no-op jobs, concurrency %d", row.concurrency)
		bare := comparison{what: what, unit: "jobs/s", rival: "bare Go loop", bound: atLeast(row.ofTheGo)}
		// Many short turns: what else the machine does in a moment should meet both sides.
		for range 2 * b.reps {
			for _, side := range []struct {
				start launch
				into  *samples
			}{{b.ours, &bare.ours}, {b.bare, &bare.theirs}} {
				rate, err := b.jobRate(side.start, row.file, row.concurrency, 1500*time.Millisecond)
				if err != nil {
					return lines, err
				}
				*side.into = append(*side.into, rate)
			}
		}
		// It is paced by sleeps, one second per job and slot, so once is enough.
		rate, err := b.jobRate(b.sdk, row.file, row.concurrency, 8*time.Second)
		if err != nil {
			return lines, err
		}
		sdk := comparison{what: what, unit: "jobs/s", ours: bare.ours, theirs: samples{rate}, rival: "SDK", bound: atLeast(row.overSDK)}
		lines = append(lines, bare, sdk)
	}
	return lines, nil
}

// jobRate counts results over a span, after the contestant has found its pace.
func (b *bench) jobRate(start launch, file string, concurrency int, span time.Duration) (float64, error) {
	r := newReferee(`{}`, 0, 0)
	var rate float64
	err := b.with(r, start, file, concurrency, func(p *child.Process) (err error) {
		rate, err = r.rate(p, &r.done, span)
		return err
	})
	return rate, err
}

// added is what the worker itself costs each job when it is idle as the job comes: from the answer of the take
// to the call of the handler, and from its return to the arrival of the result.
func (b *bench) added() ([]comparison, error) {
	ours, err := b.trips(b.ours, `{}`, 300, 3*time.Millisecond)
	if err != nil {
		return nil, err
	}
	sdk, err := b.trips(b.sdk, `{}`, 8, 3*time.Millisecond)
	if err != nil {
		return nil, err
	}
	line := func(what string, of func(trip) int64) comparison {
		return comparison{
			what: what, unit: "ms", ours: samples{millis(ours, of)}, theirs: samples{millis(sdk, of)},
			rival: "SDK", bound: atMost(1), judged: byOurs,
		}
	}
	return []comparison{
		line("take answered → handler called", func(t trip) int64 { return t.called - t.taken }),
		line("handler back → result posted", func(t trip) int64 { return t.posted - t.back }),
		line("both, median of jobs", func(t trip) int64 { return t.called - t.taken + t.posted - t.back }),
	}, nil
}

func millis(trips []trip, of func(trip) int64) float64 {
	var s samples
	for _, t := range trips {
		s = append(s, float64(of(t))/1e6)
	}
	return s.median()
}

// trips runs a number of jobs of stamp.py and returns their ways in order.
func (b *bench) trips(start launch, input string, jobs int64, pause time.Duration) ([]trip, error) {
	r := newReferee(input, jobs, pause)
	var trips []trip
	err := b.with(r, start, "stamp.py", 1, func(p *child.Process) error {
		err := r.awaitAll(p)
		trips = r.trips()
		return err
	})
	slices.SortFunc(trips, func(a, b trip) int { return int(a.called - b.called) })
	return trips, err
}

// busy is the share of the time that one slot works, with jobs of 1.05 s always waiting.
func (b *bench) busy() ([]comparison, error) {
	c := comparison{what: "one slot, 1.05 s jobs: slot busy", unit: "%", rival: "SDK", bound: atLeast(97), judged: byOurs}
	for _, side := range []struct {
		start launch
		into  *samples
	}{{b.ours, &c.ours}, {b.sdk, &c.theirs}} {
		trips, err := b.trips(side.start, `{"seconds":1.05}`, 10, 0)
		if err != nil {
			return nil, err
		}
		var worked int64
		for _, t := range trips {
			worked += t.back - t.called
		}
		span := trips[len(trips)-1].back - trips[0].called
		*side.into = append(*side.into, 100*float64(worked)/float64(span))
	}
	return []comparison{c}, nil
}
