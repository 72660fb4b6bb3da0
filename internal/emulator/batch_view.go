package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/protocol"
)

// batchState is the short form of a batch.
type batchState struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// batchView is a batch as clients read it.
type batchView struct {
	ID         string `json:"id"`
	EndpointID string `json:"endpointId"`
	Name       string `json:"name,omitempty"`
	Status     string `json:"status"`
	Total      int    `json:"requestTotal"`
	InProgress int    `json:"requestInProgress"`
	Completed  int    `json:"requestCompleted"`
	Failed     int    `json:"requestFailed"` // all that ended and did not complete
	CreatedAt  int64  `json:"createdAt"`     // ms
}

func (ep *endpoint) view(ctx context.Context, b *batch) (batchView, error) {
	running, err := ep.running(ctx, b)
	if err != nil {
		return batchView{}, err
	}
	ep.batches.mu.Lock()
	defer ep.batches.mu.Unlock()
	v := batchView{
		ID: b.id, EndpointID: ep.id, Name: b.name, Status: b.status,
		Total: len(b.requests), InProgress: running, CreatedAt: b.created.UnixMilli(),
	}
	v.Completed, v.Failed, _ = b.count()
	if v.Status == batchCancelled && running > 0 {
		v.Status = batchFinalized // until these have ended
	}
	return v, nil
}

// batchPage is a part of a batch's requests.
type batchPage struct {
	Requests []batchResult `json:"requests"`
	Total    int           `json:"total"`
	Offset   int           `json:"offset"`
	Limit    int           `json:"limit"`
	HasMore  bool          `json:"hasMore"`
}

type batchResult struct {
	ID          string          `json:"id"`
	Status      protocol.Status `json:"status"`
	Output      json.RawMessage `json:"output,omitempty"`
	Error       string          `json:"error,omitempty"`
	StartedAt   time.Time       `json:"startedAt,omitzero"`
	CompletedAt time.Time       `json:"completedAt,omitzero"`
}

func (ep *endpoint) listBatchRequests(c echo.Context, b *batch) error {
	offset, err := number(c, "offset", 0, 0, maxBatchRequests)
	if err != nil {
		return err
	}
	limit, err := number(c, "limit", 50, 1, maxListed)
	if err != nil {
		return err
	}
	page := ep.batches.page(b, offset, limit)
	for i := range page.Requests {
		if err := ep.result(c.Request().Context(), &page.Requests[i]); err != nil {
			return err
		}
	}
	return sendValue(c, page)
}

// page is what the batches themselves know of some requests.
func (bs *batches) page(b *batch, offset, limit int) batchPage {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	total := len(b.requests)
	from, to := min(offset, total), min(offset+limit, total)
	page := batchPage{Requests: []batchResult{}, Total: total, Offset: offset, Limit: limit, HasMore: to < total}
	for _, r := range b.requests[from:to] {
		page.Requests = append(page.Requests, batchResult{
			ID: r.id, Status: r.status, StartedAt: r.started.UTC(), CompletedAt: r.ended.UTC(),
		})
	}
	return page
}

// result completes what the batch knows with the job, while that is kept.
func (ep *endpoint) result(ctx context.Context, r *batchResult) error {
	job, err := ep.store.Get(ctx, r.ID)
	if errors.Is(err, protocol.ErrUnknownJob) {
		return nil // of a draft, or deleted
	}
	if err != nil {
		return err
	}
	r.Status, r.Output, r.Error = job.Status, job.Output, job.Error
	r.StartedAt, r.CompletedAt = job.Started.UTC(), job.Ended.UTC()
	return nil
}
