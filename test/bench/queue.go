package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// queue is a take out of a long queue beside one out of a short one: the first thousand of many jobs, and the last.
func (b *bench) queue() ([]comparison, error) {
	const jobs, sample = 100_000, 1000
	c := comparison{
		what: fmt.Sprintf("take, the last %d of %d jobs", sample, jobs), unit: "ms", rival: fmt.Sprintf("the first %d", sample), bound: atMost(1.5),
	}
	drain := func(url string) error {
		var all sync.WaitGroup
		errs := make([]error, connections)
		for i := range connections {
			all.Go(func() { errs[i] = request{http.MethodPost, url + "/v2/local/run", jobBody}.times(jobs / connections) })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		take := request{http.MethodGet, url + "/v2/local/job-take/w1?gpu=none&job_in_progress=1", ""}
		batch := request{http.MethodGet, fmt.Sprintf("%s/v2/local/job-take-batch/w1?gpu=none&batch_size=%d", url, sample), ""}
		for _, step := range []struct {
			request
			count int
			into  *samples
		}{{take, sample, &c.theirs}, {batch, jobs/sample - 2, nil}, {take, sample, &c.ours}} {
			began := time.Now()
			if err := step.times(step.count); err != nil {
				return err
			}
			if step.into != nil {
				*step.into = append(*step.into, time.Since(began).Seconds()*1e3/sample)
			}
		}
		return nil
	}
	for range b.reps {
		p, err := b.serve("--no-worker", "--lease", "1h")
		if err := visit(p, err, drain); err != nil {
			return nil, err
		}
	}
	return []comparison{c}, nil
}
