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
	chunkBudget  = time.Hour     // its handler waits meanwhile
	maxRetryWait = time.Minute
	firstRetry   = 500 * time.Millisecond
	// Progress is worth little when it is old, and holds up what comes after it.
	progressLimit = 10 * time.Second
)

// deliver posts the result until the platform has accepted it or does not want it.
func (t *task) deliver(outcome protocol.Outcome) error {
	stopPod := t.w.refreshing() && t.w.ledger.awaitLast(t.ctx, t)
	body := outcome.Body(stopPod)
	if len(body) > t.w.cfg.MaxResult {
		reason := fmt.Sprintf("the result is too large: %d bytes, the limit is %d", len(body), t.w.cfg.MaxResult)
		t.log(slog.LevelError, "The result is too large; the job fails.", slog.Int("bytes", len(body)), slog.Int("limit", t.w.cfg.MaxResult))
		outcome = protocol.Outcome{Error: reason, Stream: outcome.Stream}
		body, t.failed = outcome.Body(stopPod), true
	}
	err := t.postResult(body, outcome.Stream)
	if refused(err) {
		t.log(slog.LevelError, "The platform refused the result; the job fails.", slog.Int("bytes", len(body)), slog.Any("error", err))
		t.failed = true
		reason := fmt.Sprintf("the result of %d bytes could not be delivered: %s", len(body), err)
		err = t.postResult(protocol.Outcome{Error: reason, Stream: outcome.Stream}.Body(stopPod), outcome.Stream)
	}
	switch {
	case err == nil:
		t.log(slog.LevelInfo, "Finished.")
	case t.ctx.Err() != nil:
	case unwelcome(err):
		t.w.refused.add(t.job.ID)
		t.log(slog.LevelWarn, "The platform does not want the result any more.", slog.Any("error", err))
	default:
		t.log(slog.LevelError, "Failed to return job results.", slog.Any("error", err))
	}
	return err
}

func (t *task) postResult(body []byte, stream bool) error {
	return t.persist(t.ctx, "Failed to return job results, trying again.", resultBudget, len(body), func(ctx context.Context) error {
		return t.w.platform.Done(ctx, t.job.ID, body, stream)
	})
}

func (t *task) postChunk(item json.RawMessage) error {
	err := t.persist(t.handling, "Failed to post an item of the stream, trying again.", chunkBudget, len(item), func(ctx context.Context) error {
		return t.w.platform.Chunk(ctx, t.job.ID, item)
	})
	if unwelcome(err) {
		t.log(slog.LevelWarn, "The platform does not want the stream any more.", slog.Any("error", err))
		return errNoWelcome
	}
	if errors.Is(err, protocol.ErrNoURL) {
		t.w.noStream.Do(func() { t.w.log.Warn("Streams are not posted: the platform gave no URL for them.") })
	}
	return err
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
// the end of ctx, which a drain does not touch, ends it earlier.
func (t *task) persist(ctx context.Context, complaint string, budget time.Duration, size int, post func(context.Context) error) error {
	var (
		p        patience
		pace     = delays(firstRetry, maxRetryWait, 2)
		deadline = t.w.clock.elapsed() + budget
	)
	for {
		thawed := t.w.clock.thawed()
		err := post(ctx)
		if err == nil {
			t.w.ledger.setFailing(t, false)
			return nil
		}
		if ctx.Err() != nil || !p.again(err, size) {
			return p.verdict(err)
		}
		wait := max(pace.NextBackOff(), asked(err))
		if t.w.clock.elapsed()+wait > deadline {
			return fmt.Errorf("given up after %s: %w", budget, err)
		}
		t.w.ledger.setFailing(t, true)
		t.w.complain(complaint, err, t.attrs()...)
		if !pause(ctx, thawed, pace, wait) {
			return err
		}
	}
}
