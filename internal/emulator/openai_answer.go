package emulator

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"runpodctl-worker/internal/emulator/store"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

// openaiAnswer is the answer to one OpenAI call: a JSON document, or a stream of server-sent events.
type openaiAnswer struct {
	w       http.ResponseWriter
	streams bool
	started bool
}

// item answers with what a job yielded. Handlers yield documents as values or as JSON text, and events
// as text.
func (a *openaiAnswer) item(item json.RawMessage) {
	var text string
	isText := item[0] == '"' && json.Unmarshal(item, &text) == nil
	switch {
	case a.streams && isText:
		a.event(text)
	case a.streams:
		var line bytes.Buffer // an event ends at an empty line, so none may be inside
		_ = json.Compact(&line, item)
		a.event("data: " + line.String() + "\n\n")
	case isText && json.Valid([]byte(text)):
		a.document(http.StatusOK, []byte(text))
	default:
		a.document(http.StatusOK, item)
	}
}

// end answers with the end of a job that yielded nothing (more).
func (a *openaiAnswer) end(job *store.Job) {
	switch job.Status {
	case protocol.Completed:
		switch {
		case a.started:
		case job.Output == nil:
			a.item(json.RawMessage(`null`))
		default:
			a.item(job.Output)
		}
	case protocol.Cancelled:
		a.fail(http.StatusInternalServerError, "the job was cancelled")
	default:
		a.fail(http.StatusInternalServerError, job.Error)
	}
}

// fail answers in the words of the OpenAI API. What the hosted platform says is not known; its clients
// understand this, within a stream too.
func (a *openaiAnswer) fail(status int, message string) {
	body := []byte(`{"error":{"message":` + string(protocol.Quote(message)) + `,"type":"server_error","param":null,"code":null}}`)
	if a.started {
		a.event("data: " + string(body) + "\n\n")
		return
	}
	a.document(status, body)
}

// broken ends the answer where the queue has failed us, or has lost the job.
func (a *openaiAnswer) broken(err error) error {
	if a.started {
		a.fail(0, err.Error())
		return nil
	}
	return err
}

func (a *openaiAnswer) document(status int, body []byte) {
	a.started = true
	server.WriteJSON(a.w, status, body)
}

func (a *openaiAnswer) event(text string) {
	if !a.started {
		a.started = true
		a.w.Header().Set("Content-Type", "text/event-stream")
		a.w.Header().Set("Cache-Control", "no-cache")
	}
	// A caller who has gone ends the context, and that is looked at.
	_, _ = io.WriteString(a.w, text)
	_ = http.NewResponseController(a.w).Flush()
}
