package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"runpodctl-worker/internal/protocol"
)

// report is the body of job-done and job-stream. The raw fields are never looked into: what a handler
// made reaches its client byte for byte.
type report struct {
	Output  json.RawMessage
	Error   string
	Status  protocol.Status
	StopPod bool
}

// parseReport reads a body as strictly as the platform does.
func parseReport(body []byte) (report, error) {
	var raw struct {
		Output  json.RawMessage `json:"output"`
		Error   json.RawMessage `json:"error"`
		Status  protocol.Status `json:"status"`
		StopPod bool            `json:"stopPod"`
	}
	if !isObject(body) {
		return report{}, protocol.BadRequestError("body: not a JSON object")
	}
	if err := Decode(body, &raw); err != nil {
		return report{}, err
	}
	rep := report{Output: raw.Output, Status: raw.Status, StopPod: raw.StopPod}
	if len(raw.Error) > 0 && string(raw.Error) != "null" {
		if err := json.Unmarshal(raw.Error, &rep.Error); err != nil {
			return report{}, protocol.BadRequestError("error: must be a JSON string")
		}
	}
	return rep, nil
}

func isObject(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return len(body) > 0 && body[0] == '{'
}

func readReport(r *http.Request, limit int64) (report, error) {
	body, err := ReadBody(r, limit)
	if err != nil {
		return report{}, err
	}
	return parseReport(body)
}

// done serves job-done, which carries results and, marked as such, progress.
func (s *Server) done(w http.ResponseWriter, r *http.Request, t target) error {
	rep, err := readReport(r, s.opts.MaxResult)
	if _, bad := errors.AsType[protocol.BadRequestError](err); bad && s.opts.Refused != nil {
		s.opts.Refused(r.Context(), t.worker, t.job)
	}
	if err != nil {
		return err
	}
	if rep.Status == protocol.InProgress {
		err = s.backend.Progress(r.Context(), t.worker, t.job, rep.Output)
	} else {
		err = s.backend.Done(r.Context(), t.worker, t.job, Done{
			Output:  rep.Output,
			Error:   rep.Error,
			StopPod: rep.StopPod,
			Stream:  t.param(r.URL.RawQuery, "isStream") == "true",
		})
	}
	if err != nil {
		return err
	}
	accept(w)
	return nil
}

// chunk serves job-stream: one item, under "output".
func (s *Server) chunk(w http.ResponseWriter, r *http.Request, t target) error {
	rep, err := readReport(r, s.opts.MaxChunk)
	if err != nil {
		return err
	}
	if rep.Output == nil {
		return protocol.BadRequestError("output: is missing")
	}
	if err := s.backend.Chunk(r.Context(), t.worker, t.job, rep.Output); err != nil {
		return err
	}
	accept(w)
	return nil
}

func accept(w http.ResponseWriter) { WriteJSON(w, http.StatusOK, []byte("{}")) }
