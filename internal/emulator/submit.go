package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// submission is the body of run and runsync.
type submission struct {
	Input    json.RawMessage `json:"input"`
	Webhook  string          `json:"webhook"`
	S3Config json.RawMessage `json:"s3Config"`
	Policy   struct {
		ExecutionTimeout int64 `json:"executionTimeout"` // ms
		TTL              int64 `json:"ttl"`              // ms
		LowPriority      bool  `json:"lowPriority"`      // starts no worker hosted; here none is started anyway
	} `json:"policy"`
	batch string // that it belongs to
	held  bool   // until whoever reads the job releases it
}

func (ep *endpoint) run(c echo.Context) error {
	job, err := ep.submit(c, runID(), ep.opts.MaxRun, ep.opts.Retention)
	if err != nil {
		return err
	}
	b := buffer()
	defer b.free()
	b.state(job.ID, job.Status)
	return b.send(c)
}

func (ep *endpoint) runsync(c echo.Context) error {
	wait, err := ep.wait(c, ep.opts.SyncHold)
	if err != nil {
		return err
	}
	job, err := ep.submit(c, syncID(), ep.opts.MaxRunSync, ep.opts.SyncRetention)
	if err != nil {
		return err
	}
	job, err = ep.store.Wait(c.Request().Context(), job.ID, store.Ended, wait)
	if err != nil {
		return err
	}
	return sendJob(c, &job)
}

// submit enqueues what a client sent.
func (ep *endpoint) submit(c echo.Context, id string, limit int64, retention time.Duration) (store.Job, error) {
	body, err := server.ReadBody(c.Request(), limit)
	if err != nil {
		return store.Job{}, err
	}
	var s submission
	if err := server.Decode(body, &s); err != nil {
		return store.Job{}, err
	}
	return ep.enqueue(c.Request().Context(), id, &s, retention)
}

// enqueue makes a job of a submission.
func (ep *endpoint) enqueue(ctx context.Context, id string, s *submission, retention time.Duration) (store.Job, error) {
	policy, err := ep.policy(s, retention)
	if err != nil {
		return store.Job{}, err
	}
	payload := s.payload(id, !ep.opts.Disputed.KeepEmptyInput)
	return ep.store.Enqueue(ctx, store.Job{ID: id, Payload: payload, Policy: policy, Webhook: s.Webhook, Held: s.held})
}

// policy is what a submission asks for, or has otherwise. It refuses what could not be a job.
func (ep *endpoint) policy(s *submission, retention time.Duration) (store.Policy, error) {
	if isNull(s.Input) {
		return store.Policy{}, protocol.BadRequestError("input: is missing")
	}
	if err := checkWebhook(s.Webhook); err != nil {
		return store.Policy{}, err
	}
	o := ep.opts
	policy := o.Disputed.policy(store.Policy{Retention: retention, MaxRetries: o.MaxRetries})
	var err error
	if policy.Execution, err = within("policy.executionTimeout", s.Policy.ExecutionTimeout, o.Execution, o.MinExecution, o.MaxPolicy); err != nil {
		return store.Policy{}, err
	}
	policy.TTL, err = within("policy.ttl", s.Policy.TTL, o.TTL, o.MinTTL, o.MaxPolicy)
	return policy, err
}

// Ids have the form of the hosted ones, whose end names a region.
func runID() string  { return uuid.NewString() + "-u1" }
func syncID() string { return "sync-" + runID() }

// within is a policy's milliseconds as a duration, or its default when it is not given.
func within(name string, ms int64, standard, low, high time.Duration) (time.Duration, error) {
	if ms == 0 {
		return standard, nil
	}
	if ms < low.Milliseconds() || ms > high.Milliseconds() {
		return 0, protocol.BadRequestError(fmt.Sprintf("%s: must be between %d and %d milliseconds, not %d",
			name, low.Milliseconds(), high.Milliseconds(), ms))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// payload is the object that workers are handed: once built, it serves every take.
func (s *submission) payload(id string, omitEmpty bool) json.RawMessage {
	b := make([]byte, 0, len(id)+len(s.batch)+len(s.Input)+len(s.S3Config)+len(s.Webhook)+64)
	b = append(b, '{')
	if s.batch != "" {
		b = append(append(append(b, `"batchId":"`...), s.batch...), `",`...)
	}
	b = append(append(append(b, `"id":"`...), id...), '"')
	if !omitEmpty || !isEmptyObject(s.Input) {
		b = append(append(b, `,"input":`...), s.Input...)
	}
	if !isNull(s.S3Config) {
		b = append(append(b, `,"s3Config":`...), s.S3Config...)
	}
	if s.Webhook != "" {
		b = append(append(b, `,"webhook":`...), protocol.Quote(s.Webhook)...)
	}
	return append(b, '}')
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// isEmptyObject looks at valid JSON without space around it.
func isEmptyObject(raw []byte) bool {
	return raw[0] == '{' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// wait is how long a call wants to be held.
func (ep *endpoint) wait(c echo.Context, standard time.Duration) (time.Duration, error) {
	if c.Request().URL.RawQuery == "" {
		return standard, nil
	}
	text := c.QueryParam("wait")
	if text == "" {
		return standard, nil
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // then ms is the nearest
		return 0, protocol.BadRequestError("wait: not a number of milliseconds")
	}
	ms = min(max(ms, ep.opts.MinWait.Milliseconds()), ep.opts.MaxWait.Milliseconds())
	return time.Duration(ms) * time.Millisecond, nil
}
