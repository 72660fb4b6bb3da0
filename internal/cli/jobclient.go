package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"runpodctl-worker/internal/protocol"
)

// jobClient is a client of the endpoint API, as a user's program would be one.
type jobClient struct {
	base string // http://host:port/v2/endpoint
	key  string
	http *http.Client
}

// streamHold is how long one read of a stream waits for news.
const streamHold = 10 * time.Second

// jobView is what a client reads of a job: every field as the API sent it.
type jobView map[string]json.RawMessage

func (v jobView) status() protocol.Status {
	var s protocol.Status
	_ = json.Unmarshal(v["status"], &s) // a job without a status is not terminal
	return s
}

// submit starts a job and returns its id.
func (c *jobClient) submit(ctx context.Context, job json.RawMessage) (string, error) {
	var reply struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, http.MethodPost, "/run", job, &reply)
	return reply.ID, err
}

func (c *jobClient) view(ctx context.Context, id string) (jobView, error) {
	var v jobView
	err := c.call(ctx, http.MethodGet, "/status/"+id, nil, &v)
	return v, err
}

// follow reads the stream of a job to its end and hands on each item.
func (c *jobClient) follow(ctx context.Context, id string, item func(json.RawMessage)) error {
	path := fmt.Sprintf("/stream/%s?wait=%d", id, streamHold.Milliseconds())
	for {
		var reply struct {
			Status protocol.Status `json:"status"`
			Stream []struct {
				Output json.RawMessage `json:"output"`
			} `json:"stream"`
		}
		if err := c.call(ctx, http.MethodGet, path, nil, &reply); err != nil {
			return err
		}
		for _, s := range reply.Stream {
			item(s.Output)
		}
		if reply.Status.Terminal() && len(reply.Stream) == 0 {
			return nil
		}
	}
}

func (c *jobClient) call(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var p protocol.Problem
		if json.Unmarshal(text, &p) == nil && p.Detail != "" {
			return errors.New(p.Detail)
		}
		return fmt.Errorf("%s answered %s", path, resp.Status)
	}
	return json.Unmarshal(text, into)
}
