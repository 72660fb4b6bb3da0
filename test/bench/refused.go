package main

import (
	"fmt"
	"net/http"
	"time"

	"runpodctl-worker/test/proctree"

	"runpodctl-worker/test/child"
)

// refused is what a worker does to a platform that answers every take at once, with a refusal or with nothing.
func (b *bench) refused() ([]comparison, error) {
	const span = 4 * time.Second
	var lines []comparison
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadRequest, http.StatusNoContent} {
		what := fmt.Sprintf("takes answered %d at once", status)
		takes := comparison{what: what, unit: "takes/s", rival: "SDK", bound: atMost(2), judged: byOurs}
		cpu := comparison{what: what + ": CPU, all processes", unit: "% of a core", rival: "SDK", bound: atMost(2), judged: byOurs}
		for _, side := range []struct {
			start      launch
			takes, cpu *samples
		}{{b.ours, &takes.ours, &cpu.ours}, {b.sdk, &takes.theirs, &cpu.theirs}} {
			r := newReferee(`{}`, 1, 0)
			r.refusal = status
			err := b.with(r, side.start, "noop.py", 1, func(p *child.Process) error {
				began, before := time.Now(), r.takes.Load()
				used := proctree.CPU(p.Pid())
				time.Sleep(span)
				took := time.Since(began).Seconds()
				*side.takes = append(*side.takes, float64(r.takes.Load()-before)/took)
				*side.cpu = append(*side.cpu, 100*(proctree.CPU(p.Pid())-used).Seconds()/took)
				return nil
			})
			if err != nil {
				return lines, err
			}
		}
		lines = append(lines, takes, cpu)
	}
	return lines, nil
}
