package worker

import (
	"sync"
	"time"
)

const (
	// maxRefusals is how often the platform may not want the result of a job before the job is left alone for a while. A
	// few times are no fault of the job: who was silent for too long loses it, is told so at the end, and may get it once more.
	maxRefusals = 3
	// forgetAfter is how long the refusals of a job count.
	forgetAfter = 10 * repeatAfter
)

// refusals are the jobs whose results the platform did not want.
type refusals struct {
	mu   sync.Mutex
	jobs map[string]refusal
}

type refusal struct {
	times int
	last  time.Time
}

// add notes one.
func (r *refusals) add(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, was := range r.jobs { // so that the map holds nothing older
		if time.Since(was.last) >= forgetAfter {
			delete(r.jobs, id)
		}
	}
	if r.jobs == nil {
		r.jobs = map[string]refusal{}
	}
	r.jobs[job] = refusal{r.jobs[job].times + 1, time.Now()}
}

// bar tells whether a job is to be left alone: it was refused too often, and a moment ago.
func (r *refusals) bar(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.jobs[job]
	return was.times >= maxRefusals && time.Since(was.last) < repeatAfter
}
