package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"runpodctl-worker/internal/protocol"
)

// How long posts are repeated, and how fast.
const (
	resultBudget = 6 * time.Hour // the hosted platform keeps a job for a day, once it is taken
	chunkBudget  = 2 * time.Hour // its handler waits meanwhile
	maxRetryWait = time.Minute
	firstRetry   = 500 * time.Millisecond
	// Progress is worth little when it is old, and holds up what comes after it.
	progressLimit = 10 * time.Second
)

var (
	budgets    = [calls]time.Duration{result: resultBudget, chunk: chunkBudget}
	complaints = [calls]string{
		result: "Failed to return job results, trying again.",
		chunk:  "Failed to post an item of the stream, trying again.",
	}
)

// deliver posts the result until the platform has accepted it or does not want it.
func (t *task) deliver(outcome protocol.Outcome) verdict {
	stopPod := t.w.refreshing() && t.w.ledger.awaitLast(t.ctx, t)
	outcome, body := t.fit(t.ctx, outcome, stopPod)
	decided, err := t.postResult(body, outcome.Stream)
	if decided == shrink {
		t.log(slog.LevelError, "The platform refused the result; the job fails.", slog.Int64("bytes", body.Size()), slog.Any("error", err))
		t.failed = true
		small := shrunk(outcome, fmt.Sprintf("the result of %d bytes could not be delivered: %s", body.Size(), err))
		decided, err = t.postResult(small.Body(stopPod), small.Stream)
	}
	switch {
	case decided == settled:
		t.log(slog.LevelInfo, "Finished.")
	case t.ctx.Err() != nil:
	case decided == unwanted:
		if !t.late { // a late one has lost against another worker, perhaps: that does not speak against the job
			t.w.refused.add(t.job.ID)
		}
		t.log(slog.LevelWarn, "The platform does not want the result any more.", slog.Any("error", err))
	default:
		t.log(slog.LevelError, "Failed to return job results.", slog.Any("error", err))
	}
	return decided
}

// shrunk is what takes the place of a result that cannot be sent. A job that had failed by itself keeps the gist of that.
func shrunk(outcome protocol.Outcome, why string) protocol.Outcome {
	if outcome.Error != "" {
		why = brief(outcome.Error) + " (" + why + ")"
	}
	return protocol.Outcome{Error: why, Stream: outcome.Stream}
}

func (t *task) postResult(body protocol.Body, stream bool) (verdict, error) {
	return t.persist(t.ctx, result, body.Size(), func(ctx context.Context) error {
		return t.w.platform.Done(ctx, t.job.ID, body, stream)
	})
}

func (t *task) postChunk(item json.RawMessage) (verdict, error) {
	decided, err := t.persist(t.handling, chunk, int64(len(item)), func(ctx context.Context) error {
		return t.w.platform.Chunk(ctx, t.job.ID, item)
	})
	if decided == unwanted {
		t.log(slog.LevelWarn, "The platform does not want the stream any more.", slog.Any("error", err))
	}
	if errors.Is(err, protocol.ErrNoURL) {
		t.w.noStream.Do(func() { t.w.log.Warn("Streams are not posted: the platform gave no URL for them.") })
	}
	return decided, err
}

// postProgress tries once: the next progress, or the result, makes up for it.
func (t *task) postProgress(value json.RawMessage) {
	ctx, cancel := context.WithTimeout(t.handling, progressLimit)
	defer cancel()
	if err := t.w.platform.Progress(ctx, t.job.ID, value); err != nil && t.handling.Err() == nil {
		t.w.complain("Failed to post progress.", err, t.attrs()...)
	}
}

// persist repeats a post until the platform has decided about it, or the budget is used up. Nothing but
// the end of ctx, which a drain does not touch, ends it earlier. There is an error unless it is settled.
func (t *task) persist(ctx context.Context, c call, size int64, post func(context.Context) error) (verdict, error) {
	var (
		p        patience
		pace     = delays(firstRetry, maxRetryWait, 2)
		deadline = t.w.clock.elapsed() + budgets[c]
	)
	for {
		thawed := t.w.clock.thawed()
		err := post(ctx)
		decided := p.judge(c, size, err)
		if decided == settled {
			t.w.ledger.setFailing(t, false)
			return settled, nil
		}
		if decided != again || ctx.Err() != nil {
			return decided, err
		}
		left := deadline - t.w.clock.elapsed()
		if left <= 0 {
			return hopeless, fmt.Errorf("given up after %s: %w", budgets[c], err)
		}
		t.w.ledger.setFailing(t, true)
		t.w.complain(complaints[c], err, t.attrs()...)
		if !pause(ctx, thawed, pace, min(max(pace.NextBackOff(), asked(err)), left)) {
			return again, err
		}
	}
}
