package emulator

import (
	"bytes"
	"encoding/json"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/emulator/webhook"
	"runpodctl-worker/internal/protocol"
)

// checkWebhook refuses at submission what could never be called at the end.
func checkWebhook(text string) error {
	if text == "" {
		return nil
	}
	if _, err := webhook.ParseURL(text); err != nil {
		return protocol.BadRequestError("webhook: " + err.Error())
	}
	return nil
}

// sendWebhook sends the news of a job that has just ended, in whatever state.
func (ep *endpoint) sendWebhook(job *store.Job) {
	if job.Webhook == "" {
		return
	}
	u, err := webhook.ParseURL(job.Webhook)
	if err != nil { // it was checked when the job came
		return
	}
	var payload struct {
		Input json.RawMessage `json:"input"`
	}
	if json.Unmarshal(job.Payload, &payload) != nil || payload.Input == nil {
		payload.Input = json.RawMessage(`{}`) // see empty-input: workers are not handed it, but that is what was sent
	}
	b := buffer()
	defer b.free()
	b.news(job, payload.Input)
	ep.webhook.Send(webhook.Message{Job: job.ID, URL: u, Body: bytes.Clone(b.b)})
}
