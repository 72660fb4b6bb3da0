package main

import (
	"fmt"
	"time"
)

const callRetries = "5"

// calls is the trial of a worker whose calls go wrong.
func calls(o options, dir string) error {
	platform, err := startPlatform(o, dir, callRetries)
	if err != nil {
		return err
	}
	defer platform.Stop()
	news, err := listen()
	if err != nil {
		return err
	}
	defer news.close()
	began := time.Now()
	work := make([]work, o.jobs)
	for i := range work {
		work[i].N = i
	}
	jobs, err := platform.submit(work, news.url)
	if err != nil {
		return err
	}
	worker, err := platform.startWorker(o, dir)
	if err != nil {
		return err
	}
	defer worker.Stop()
	if err := platform.awaitEnds(o, len(jobs), worker.Alive); err != nil {
		return err
	}
	took := time.Since(began)
	code, err := worker.Term()
	if err != nil {
		return err
	}
	r, err := platform.examine(jobs, news)
	if err != nil {
		return err
	}
	r.exit, r.took = code, took
	fmt.Fprintln(o.out, "\n## Calls go wrong")
	r.write(o.out)
	return r.verdict()
}
