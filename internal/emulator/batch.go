package emulator

import (
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

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

// batch is a list of requests. What can change is guarded by batches.mu.
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

func newBatch(now time.Time) *batch {
	return &batch{id: "batch_" + strings.ReplaceAll(uuid.NewString(), "-", ""), created: now, status: batchDraft}
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
