package main

import (
	"fmt"
	"os"
	"time"

	"runpodctl-worker/test/child"
)

// gateway is what the second door costs: the bare loop as the program behind it, beside the same loop at the platform
// itself, and beside a handler behind the first door.
func (b *bench) gateway() ([]comparison, error) {
	var lines []comparison
	for _, row := range []struct {
		file        string
		concurrency int
	}{{"noop.py", 1}, {"noop_async.py", 16}} {
		what := fmt.Sprintf("no-op jobs through the gateway, concurrency %d", row.concurrency)
		direct := comparison{what: what, unit: "jobs/s", rival: "bare Go loop", judged: byNobody}
		shim := comparison{what: what, unit: "jobs/s", rival: "Python handler through the shim", judged: byNobody}
		for range b.reps {
			for _, side := range []struct {
				start launch
				into  []*samples
			}{
				{b.throughGateway, []*samples{&direct.ours, &shim.ours}},
				{b.bare, []*samples{&direct.theirs}},
				{b.ours, []*samples{&shim.theirs}},
			} {
				rate, err := b.jobRate(side.start, row.file, row.concurrency, 1500*time.Millisecond)
				if err != nil {
					return lines, err
				}
				for _, into := range side.into {
					*into = append(*into, rate)
				}
			}
		}
		lines = append(lines, direct, shim)
		if row.concurrency == 1 {
			lines = append(lines, perJob(direct))
		}
	}
	return lines, nil
}

// perJob is what one job takes where the next one waits for it.
func perJob(rates comparison) comparison {
	c := comparison{what: "one job through the gateway, the next waits for it", unit: "ms", rival: rates.rival, judged: byNobody}
	for i := range rates.ours {
		c.ours = append(c.ours, 1e3/rates.ours[i])
		c.theirs = append(c.theirs, 1e3/rates.theirs[i])
	}
	return c
}

// throughGateway is the bare loop as a program of the worker's, whatever the file.
func (b *bench) throughGateway(r *referee, _ string, concurrency int) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := fmt.Sprint(concurrency)
	return b.start(r.env(), b.bin, "run", "--no-shim", "--concurrency", n, "--", self, "-bare-loop", fromEnv, "-concurrency", n)
}
