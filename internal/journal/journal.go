// Package journal keeps what a worker owes beyond the end of its process: which jobs it has taken, the results that the
// platform has not accepted yet, and which jobs took the program down.
//
// It is a directory of one process, with one segment to which records are appended, and a file for each large result.
// What is written is in the hands of the kernel, so that nothing is lost with the process. It is never synced to the disk:
// a journal of another boot is not read, since the platform has given its jobs to others long ago.
package journal

import (
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
)

// maxHeld bounds the bytes of the results that are kept.
const maxHeld = 512 << 20

// Journal is an open journal. What it cannot write it does not keep, and says so once; the worker goes on.
type Journal struct {
	dir  string
	lock *os.File
	log  *slog.Logger
	owed []debt // found at the start

	mu      sync.Mutex
	state   *state
	segment *os.File // nil once it is closed
	number  uint64   // the last that a file was given
	size    int64    // of the segment
	turn    int64    // the size at which a new one is begun
	buf     []byte
	said    bool      // that something could not be kept
	looked  time.Time // for the segment, which somebody may have deleted
}

type debt struct {
	job  string
	size int64
}

// Owed are the jobs that a process before this one had results of and no end, the oldest result first, with the sizes of the results.
func (j *Journal) Owed() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, d := range j.owed {
			if !yield(d.job, d.size) {
				return
			}
		}
	}
}

// Recall reads the result of a job that is owed. A large one stays in its file until the outcome is dropped.
func (j *Journal) Recall(job string) (protocol.Outcome, error) {
	outcome, err := j.read(job)
	if err != nil {
		return protocol.Outcome{}, fmt.Errorf("recall the result of a job: %w", err)
	}
	return outcome, nil
}

// Crashes counts for each job how often it took the program, or a worker, down.
func (j *Journal) Crashes() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	crashes := map[string]int{}
	for job, d := range j.state.doubts {
		if d.crashes > 0 {
			crashes[job] = int(min(d.crashes, maxDoubts))
		}
	}
	return crashes
}

// Suspected tells whether a worker died while it ran a job that has had no end since.
func (j *Journal) Suspected(job string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.doubts[job] != nil
}

// Waiting tells how many results are kept now, and how many bytes they have. Those found at the start are among them until
// they are settled.
func (j *Journal) Waiting() (results int, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.state.jobs {
		if e.result != nil {
			results++
		}
	}
	return results, j.state.held
}

// Taken notes that a job is run from now on.
func (j *Journal) Taken(job string) {
	j.note(job, func(*entry) (record, bool) { return record{kind: kindTaken, job: job}, true })
}

// Settled notes that nothing is owed for a job any more. It has not taken this worker down, so a mere suspicion is over, too.
func (j *Journal) Settled(job string) {
	j.note(job, func(e *entry) (record, bool) { return record{kind: kindSettled, job: job}, e != nil })
	j.note(job, func(*entry) (record, bool) {
		d := j.state.doubts[job]
		return record{kind: kindCrashed, job: job}, d != nil && d.crashes == 0
	})
}

// Released notes that the worker has let go of a job. A result that is kept is still owed.
func (j *Journal) Released(job string) {
	j.note(job, func(e *entry) (record, bool) {
		return record{kind: kindSettled, job: job}, e != nil && e.result == nil
	})
}

// Crashed notes that a job that had the program to itself took it down.
func (j *Journal) Crashed(job string) {
	j.note(job, func(*entry) (record, bool) {
		r := record{kind: kindCrashed, job: job, count: 1}
		if d := j.state.doubts[job]; d != nil {
			r.count += d.crashes
		}
		return r, true
	})
}

// Result keeps what came of a job.
func (j *Journal) Result(job string, outcome protocol.Outcome) {
	head := outcomeHead(outcome)
	if outcome.Spool == nil && len(head)+len(outcome.Output) <= maxInline {
		j.noteInline(job, head, outcome.Output)
		return
	}
	kept, err := j.keep(outcome, head) // without the lock, since it takes a while
	if err != nil {
		j.complain(err)
		return
	}
	j.note(job, func(*entry) (record, bool) { return record{kind: kindFile, job: job, result: kept}, true })
}
