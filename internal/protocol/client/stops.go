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

// Stops waits, as long as the platform holds the call, for ids of jobs that it wants stopped. Ids
// that can be read come back even with an error about the rest.
func (c *Client) Stops(ctx context.Context) ([]string, error) {
	url := c.urls.Stop(c.worker)
	if url == "" {
		return nil, protocol.ErrNoURL
	}
	body, err := c.send(ctx, c.calls, request{call: "job-stop", method: http.MethodGet, url: url, limit: pollLimit})
	if err != nil {
		return nil, err
	}
	ids, err := parseStops(body)
	if err != nil {
		return ids, &protocol.DecodeError{Call: "job-stop", Err: err}
	}
	return ids, nil
}

func parseStops(body []byte) ([]string, error) {
	if body = bytes.TrimSpace(body); len(body) == 0 {
		return nil, nil
	}
	var answer struct {
		Jobs []json.RawMessage `json:"jobsToStop"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	var (
		ids []string
		bad []error
	)
	for _, raw := range answer.Jobs {
		var id string
		if err := json.Unmarshal(raw, &id); err != nil || id == "" {
			bad = append(bad, fmt.Errorf("not a job id: %.60s", raw))
			continue
		}
		ids = append(ids, id)
	}
	return ids, errors.Join(bad...)
}
