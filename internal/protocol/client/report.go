package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"runpodctl-worker/internal/protocol"
)

// Done posts the result of a job. stream tells whether its handler was a generator.
func (c *Client) Done(ctx context.Context, job string, body protocol.Body, stream bool) error {
	if c.urls.PostOutput == "" {
		return protocol.ErrNoURL
	}
	return c.post(ctx, "job-done", c.urls.Done(c.worker, job, stream), job, body)
}

// Progress posts what clients see as the output of a running job. It goes where results go, so a
// late one could replace a result: the caller keeps the order.
func (c *Client) Progress(ctx context.Context, job string, value json.RawMessage) error {
	if c.urls.PostOutput == "" {
		return protocol.ErrNoURL
	}
	body := wrap(`{"status":"`+string(protocol.InProgress)+`","output":`, value)
	return c.post(ctx, "job-done", c.urls.Done(c.worker, job, false), job, body)
}

// Chunk posts one item of a stream.
func (c *Client) Chunk(ctx context.Context, job string, item json.RawMessage) error {
	url := c.urls.Stream(c.worker, job)
	if url == "" {
		return protocol.ErrNoURL
	}
	return c.post(ctx, "job-stream", url, job, wrap(`{"output":`, item))
}

func (c *Client) post(ctx context.Context, call, url, job string, body protocol.Body) error {
	_, err := c.send(ctx, c.calls, request{
		call:   call,
		method: http.MethodPost,
		url:    url,
		job:    job,
		body:   body,
		limit:  postLimit + time.Duration(body.Size()/bytesPerSecond)*time.Second,
	})
	return err
}

// wrap puts a value, which is JSON already, into an object.
func wrap(head string, value json.RawMessage) protocol.Body {
	b := make([]byte, 0, len(head)+len(value)+1)
	b = append(b, head...)
	b = append(b, value...)
	return protocol.NewBody(append(b, '}'))
}
