package emulator

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
)

// The hosted limits. A third one, 50000 requests that wait, follows from these two.
const (
	maxActiveBatches = 10
	maxBatchRequests = 5000
)

// maxBatches is how many are remembered; the oldest that is done goes first.
const maxBatches = 100

// The states of a batch. One that is done stays FINALIZED: its counts tell.
const (
	batchDraft     = "DRAFT"
	batchFinalized = "FINALIZED"
	batchFailed    = "FAILED"
	batchCancelled = "CANCELLED"
)

// batches are those of one endpoint. They hold which jobs belong together and how these ended, which
// outlives the jobs; all else is the store's.
type batches struct {
	mu   sync.Mutex
	list []*batch                 // oldest first
	jobs map[string]*batchRequest // of all finalized batches
}

type batch struct {
	id      string
	created time.Time
	step    sync.Mutex // held over a whole finalize or cancel; taken before batches.mu

	name     string
	status   string
	requests []*batchRequest
}

// batchRequest is a job, or what will be one when its batch is finalized.
type batchRequest struct {
	id         string // of the job too
	submission *submission
	status     protocol.Status
	started    time.Time
	ended      time.Time
}

func newBatches() *batches { return &batches{jobs: map[string]*batchRequest{}} }

func newBatch(now time.Time) *batch {
	return &batch{id: "batch_" + strings.ReplaceAll(uuid.NewString(), "-", ""), created: now, status: batchDraft}
}

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

func (bs *batches) set(b *batch, status string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b.status = status
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

// count sorts the requests of a batch by how they ended. The caller holds the lock.
func (b *batch) count() (completed, failed, open int) {
	for _, r := range b.requests {
		switch {
		case !r.status.Terminal():
			open++
		case r.status == protocol.Completed:
			completed++
		default:
			failed++
		}
	}
	return completed, failed, open
}

// active reports whether a batch counts against the limit. The caller holds the lock.
func (b *batch) active() bool {
	_, _, open := b.count()
	return b.status == batchDraft || b.status == batchFinalized && open > 0
}
