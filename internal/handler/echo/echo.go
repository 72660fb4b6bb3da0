// Package echo is the built-in handler that returns the input of a job as its output.
package echo

import (
	"context"
	"encoding/json"
	"fmt"

	"runpodctl-worker/internal/protocol"
)

// Handler answers every job with its input. The zero value is not ready for use: see New.
type Handler struct{ exited chan struct{} }

// New returns an echo handler.
func New() *Handler { return &Handler{exited: make(chan struct{})} }

// Start is ready at once.
func (*Handler) Start(context.Context) (protocol.Ready, error) {
	return protocol.Ready{Name: "echo (built in)"}, nil
}

// Handle returns the bytes of the input as they came.
func (*Handler) Handle(_ context.Context, job protocol.Job, _ protocol.Sink) (protocol.Outcome, error) {
	var body struct {
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(job.Raw, &body); err != nil {
		return protocol.Outcome{}, fmt.Errorf("job %s: %w", job.ID, err)
	}
	return protocol.Outcome{Output: body.Input}, nil
}

// Limit is none: an echo takes no time.
func (*Handler) Limit() int { return 0 }

// Exited is never closed: there is no program that could end.
func (h *Handler) Exited() <-chan struct{} { return h.exited }

// Err is always nil.
func (*Handler) Err() error { return nil }

// Stop has nothing to end.
func (*Handler) Stop(context.Context) error { return nil }
