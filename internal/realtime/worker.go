package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/server"
)

var errAbandoned = errors.New("the worker ended before the job did")

// worker answers requests with the results of a handler.
type worker struct {
	cfg     Config
	handler Handler
	jobs    context.Context // jobs run until its end
	slots   *slots

	mu   sync.Mutex
	held map[string]int // how many jobs run with an id, which clients may use twice
}

func (w *worker) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{endpoint}/realtime", w.realtime)
	return mux
}

// realtime runs the job of a request and answers with its result. A job that failed has a result as well, so its
// status is 200. The job goes on when its client has gone: its results may also go elsewhere.
func (w *worker) realtime(resp http.ResponseWriter, r *http.Request) {
	if r.PathValue("endpoint") != w.cfg.Endpoint {
		server.WriteProblem(resp, http.StatusNotFound, "no such endpoint")
		return
	}
	body, err := server.ReadBody(r, protocol.MaxRunSyncBody)
	if err != nil {
		server.WriteError(resp, err) // of a sender that has gone, nobody reads the answer
		return
	}
	job, faults := parseJob(body)
	if len(faults) > 0 {
		server.WriteJSON(resp, http.StatusUnprocessableEntity, refusal(faults))
		return
	}
	if err := w.slots.take(r.Context()); err != nil {
		resp.Header().Set("Connection", "close")
		server.WriteProblem(resp, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer w.slots.give()
	w.hold(job.ID, 1)
	log := w.cfg.Log.With(slog.String("job", job.ID))
	log.Info("Started.")
	outcome, err := w.call(job)
	defer outcome.Drop()
	if err == nil || w.jobs.Err() == nil { // else it stays, as unfinished
		w.hold(job.ID, -1)
	}
	if err != nil {
		log.Error("The job could not be finished.", slog.Any("error", err))
		failed := protocol.Outcome{Error: cmp.Or(err.Error(), "the handler failed")}
		answer(resp, http.StatusInternalServerError, failed.Body(false))
		return
	}
	if outcome.Error != "" {
		log.Warn("The job failed.")
	}
	answer(resp, http.StatusOK, outcome.Body(outcome.Refresh))
	log.Info("Finished.")
}

func answer(resp http.ResponseWriter, status int, body protocol.Body) {
	resp.Header().Set("Content-Type", "application/json")
	resp.Header().Set("Content-Length", strconv.FormatInt(body.Size(), 10))
	resp.WriteHeader(status)
	_, _ = io.Copy(resp, body.Open()) // a reader that has gone needs no answer
}

// call calls the handler. The items of a generator become a list, since there is no stream that they could go to.
func (w *worker) call(job protocol.Job) (outcome protocol.Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	items := new(collector)
	outcome, err = w.handler.Handle(w.jobs, job, items)
	if err == nil && outcome.Error == "" && items.any() {
		outcome.Drop()
		outcome.Output, outcome.Spool = items.list(), nil
	}
	return outcome, err
}

// hold counts a job in or out.
func (w *worker) hold(id string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[id] += n; w.held[id] == 0 {
		delete(w.held, id)
	}
}

func (w *worker) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.held))
}
