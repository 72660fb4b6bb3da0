package emulator

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// batches are those of one endpoint. They hold which jobs belong together and how these ended, which
// outlives the jobs; all else is the store's.
type batches struct {
	mu   sync.Mutex
	list []*batch                 // oldest first
	jobs map[string]*batchRequest // of all finalized batches
}

func newBatches() *batches { return &batches{jobs: map[string]*batchRequest{}} }

// add keeps a new batch, unless there are enough that are not done. The oldest that is done is
// forgotten for it when there are too many.
func (bs *batches) add(b *batch) error {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	active, done := 0, -1
	for i, other := range slices.Backward(bs.list) {
		if other.active() {
			active++
		} else {
			done = i
		}
	}
	if active >= maxActiveBatches {
		return protocol.BadRequestError(fmt.Sprintf("batch: an endpoint has at most %d that are not done", maxActiveBatches))
	}
	if len(bs.list) >= maxBatches {
		for _, r := range bs.list[done].requests {
			delete(bs.jobs, r.id)
		}
		bs.list = slices.Delete(bs.list, done, done+1)
	}
	bs.list = append(bs.list, b)
	return nil
}

func (bs *batches) find(id string) *batch {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	for _, b := range bs.list {
		if b.id == id {
			return b
		}
	}
	return nil
}

// newest is a copy of the list, the newest first.
func (bs *batches) newest() []*batch {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	list := slices.Clone(bs.list)
	slices.Reverse(list)
	return list
}

// ended notes the end of a job, if it belongs to a batch.
func (bs *batches) ended(job *store.Job) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if r := bs.jobs[job.ID]; r != nil {
		r.status, r.started, r.ended = job.Status, job.Started, job.Ended
	}
}

// draft changes a batch while nothing of it has started.
func (bs *batches) draft(b *batch, change func() error) error {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b.status != batchDraft {
		return protocol.BadRequestError("batch: only a DRAFT can be changed, this one is " + b.status)
	}
	return change()
}

func (bs *batches) statusOf(b *batch) string {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return b.status
}

// fail ends a batch that could not be started whole. What has no job by now will never have one.
func (bs *batches) fail(b *batch) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b.status = batchFailed
	for _, r := range b.requests {
		r.submission = nil
	}
}

// cancel makes a batch CANCELLED, unless it has FAILED. The requests of a draft end with it; over tells
// that no job has to.
func (bs *batches) cancel(b *batch, now time.Time) (over bool) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	switch b.status {
	case batchFailed:
		return true
	case batchDraft:
		for _, r := range b.requests {
			r.status, r.ended, r.submission = protocol.Cancelled, now, nil
		}
		over = true
	}
	b.status = batchCancelled
	return over
}

// openOf are the requests of a batch that have not ended.
func (bs *batches) openOf(b *batch) []string {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	var open []string
	for _, r := range b.requests {
		if !r.status.Terminal() {
			open = append(open, r.id)
		}
	}
	return open
}

// lost notes that the job of a request was deleted before it had ended.
func (bs *batches) lost(id string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if r := bs.jobs[id]; r != nil && !r.status.Terminal() {
		r.status = protocol.Cancelled
	}
}

func (bs *batches) rename(b *batch, name string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b.name = name
}
