package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// take answers a single take with an object and a batch with an array.
func (s *Server) take(w http.ResponseWriter, r *http.Request, t target, n int) error {
	ctx := r.Context()
	jobs, err := s.backend.Take(ctx, t.worker, n)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	// Only before the answer is out does a closed connection mean that the jobs never arrived: a
	// worker may close right after it has read them.
	if err = ctx.Err(); err == nil {
		err = writeJobs(w, jobs, t.call == "job-take-batch")
	}
	if err != nil {
		s.backend.Untake(t.worker, jobs)
		s.log.Debug("taken jobs went back", "worker", t.worker, "jobs", len(jobs), "error", err)
	}
	return nil
}

// writeJobs hands the objects on as they are. The flush is what shows a broken connection.
func writeJobs(w http.ResponseWriter, jobs []json.RawMessage, batch bool) error {
	before, after := "", ""
	if batch {
		before, after = "[", "]"
	}
	size := len(before) + len(jobs) - 1 + len(after)
	for _, job := range jobs {
		size += len(job)
	}
	w.Header()["Content-Type"] = jsonType
	w.Header()["Content-Length"] = []string{strconv.Itoa(size)}

	for _, job := range jobs {
		if _, err := io.WriteString(w, before); err != nil {
			return err
		}
		if _, err := w.Write(job); err != nil {
			return err
		}
		before = ","
	}
	if _, err := io.WriteString(w, after); err != nil {
		return err
	}
	err := http.NewResponseController(w).Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
