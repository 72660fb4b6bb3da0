package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"runpodctl-worker/internal/protocol"
)

// fit returns the outcome with its body, or, if that is larger than what may be sent, a small one: of an output that is kept
// elsewhere, where there is a place for it, and else of a job that fails.
func (t *task) fit(ctx context.Context, outcome protocol.Outcome, stopPod bool) (protocol.Outcome, []byte) {
	body, limit := outcome.Body(stopPod), t.w.cfg.MaxResult
	size := len(body)
	if size <= limit {
		return outcome, body
	}
	why := fmt.Sprintf("the result is too large: %d bytes, the limit is %d", size, limit)
	if place := t.w.cfg.Offload; place != nil && size-len(outcome.Output) < limit { // it is the output that is too large
		small, err := t.offload(ctx, place, outcome)
		if err != nil {
			why += "; it could not be uploaded: " + err.Error()
		} else if body = small.Body(stopPod); len(body) <= limit {
			return small, body
		}
	}
	if ctx.Err() == nil {
		t.log(slog.LevelError, "The result is too large; the job fails.", slog.Int("bytes", size), slog.Int("limit", limit))
	}
	outcome = shrunk(outcome, why)
	t.failed = true
	return outcome, outcome.Body(stopPod)
}

// offload puts the output elsewhere. The small one that takes its place is what is owed from now on: should this process
// end, the next one need not upload it again.
func (t *task) offload(ctx context.Context, place Offloader, outcome protocol.Outcome) (protocol.Outcome, error) {
	size := len(outcome.Output)
	output, err := place.Offload(ctx, t.job.ID, bytes.NewReader(outcome.Output), int64(size))
	if err != nil {
		return protocol.Outcome{}, err
	}
	t.log(slog.LevelInfo, "The output is too large for the platform and was uploaded.", slog.Int("bytes", size))
	outcome.Output = output
	t.keep(outcome)
	return outcome, nil
}
