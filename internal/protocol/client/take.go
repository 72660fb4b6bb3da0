package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"runpodctl-worker/internal/protocol"
)

// jobSlack is what a job object may hold beside its input.
const jobSlack = 1 << 20

// Take asks for up to n jobs and waits as long as the platform holds the call. No job is no error. Of an
// answer that is good in part, the good jobs come back together with an error about the rest.
func (c *Client) Take(ctx context.Context, n int, busy bool) ([]protocol.Job, error) {
	body, err := c.send(ctx, c.calls, request{
		call:   "job-take",
		method: http.MethodGet,
		url:    c.urls.Take(c.worker, n, busy),
		limit:  pollLimit,
		most:   int64(max(n, 1)) * (protocol.MaxRunSyncBody + jobSlack),
	})
	if err != nil {
		return nil, err
	}
	jobs, err := parseJobs(body)
	if err != nil {
		return jobs, &protocol.DecodeError{Call: "job-take", Err: err}
	}
	return jobs, nil
}

// parseJobs reads one job object, an array of them, or nothing.
func parseJobs(body []byte) ([]protocol.Job, error) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0, bytes.Equal(body, []byte("null")):
		return nil, nil
	case body[0] == '[':
		return parseBatch(body)
	}
	if body[0] != '{' {
		return nil, fmt.Errorf("neither a job nor a list of jobs: %.60q", body)
	}
	job, err := protocol.ParseJob(body)
	if err != nil {
		return nil, err
	}
	return []protocol.Job{job}, nil
}

// parseBatch reads entry by entry: the platform believes that all of them have been handed over, so
// the entries before a broken one must not be lost with it.
func parseBatch(body []byte) ([]protocol.Job, error) {
	var (
		jobs []protocol.Job
		bad  []error
	)
	dec := json.NewDecoder(bytes.NewReader(body))
	if _, err := dec.Token(); err != nil { // the opening bracket
		return nil, err
	}
	for i := 1; dec.More(); i++ {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return jobs, errors.Join(append(bad, fmt.Errorf("entry %d: %w", i, err))...)
		}
		job, err := protocol.ParseJob(raw)
		if err != nil {
			bad = append(bad, fmt.Errorf("entry %d: %w", i, err))
			continue
		}
		jobs = append(jobs, job)
	}
	if _, err := dec.Token(); err != nil { // the closing one
		bad = append(bad, err)
	}
	return jobs, errors.Join(bad...)
}
