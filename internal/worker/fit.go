package worker

import (
	"context"
	"fmt"
	"log/slog"

	"runpodctl-worker/internal/protocol"
)

// fit returns the outcome with its body, or, if that is larger than what may be sent, a small one: of an output that is kept
// elsewhere, where there is a place for it, and else of a job that fails.
func (t *task) fit(ctx context.Context, outcome protocol.Outcome, stopPod bool) (protocol.Outcome, protocol.Body) {
	body, limit := outcome.Body(stopPod), int64(t.w.cfg.MaxResult)
	size := body.Size()
	if size <= limit {
		return outcome, body
	}
	why := fmt.Sprintf("the result is too large: %d bytes, the limit is %d", size, limit)
	_, output := outcome.Content()
	if place := t.w.cfg.Offload; place != nil && size-output < limit { // it is the output that is too large
		small, err := t.offload(ctx, place, outcome)
		if err != nil {
			why += "; it could not be uploaded: " + err.Error()
		} else if body = small.Body(stopPod); body.Size() <= limit {
			return small, body
		}
	}
	if ctx.Err() == nil {
		t.log(slog.LevelError, "The result is too large; the job fails.", slog.Int64("bytes", size), slog.Int64("limit", limit))
	}
	outcome = shrunk(outcome, why)
	t.failed = true
	return outcome, outcome.Body(stopPod)
}

// offload puts the output elsewhere. The small one that takes its place is what is owed from now on: should this process
// end, the next one need not upload it again.
func (t *task) offload(ctx context.Context, place Offloader, outcome protocol.Outcome) (protocol.Outcome, error) {
	output, size := outcome.Content()
	small, err := place.Offload(ctx, t.job.ID, output, size)
	if err != nil {
		return protocol.Outcome{}, err
	}
	t.log(slog.LevelInfo, "The output is too large for the platform and was uploaded.", slog.Int64("bytes", size))
	outcome.Output, outcome.Spool = small, nil
	t.keep(outcome)
	return outcome, nil
}
