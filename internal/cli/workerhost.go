package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/echo"
	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/ready"
	"runpodctl-worker/internal/realtime"
	"runpodctl-worker/internal/redact"
	"runpodctl-worker/internal/worker"
)

// workerHost joins a handler, a client and the loop into one worker, as often as one is needed.
type workerHost struct {
	options        workerOptions
	platform       config.Worker
	lookup         config.Lookup
	env            []string // of the handler's program
	stdout, stderr io.Writer
	log            *slog.Logger
	ready          func(protocol.Ready)           // called at each start; may be nil
	fit            *fitness                       // nil: no fitness checks
	journal        worker.Journal                 // nil: none
	spool          func() (protocol.Spool, error) // nil: the handler's own
	secrets        *redact.Secrets
	printed        *programLog // nil: what the program prints goes through as it is, or to logs
	logs           *jobLogs    // nil: lines of jobs are kept nowhere
	watched        *observed   // nil: nobody looks
	cache          *warmCache  // nil: nothing is cached
}

// once runs one worker to its end.
func (h *workerHost) once(l lifecycle) (worker.Reason, error) {
	api := h.client()
	defer api.Close()
	linger := h.options.linger
	if linger == 0 {
		linger = -1 // the worker's word for none
	}
	w := worker.New(worker.Config{
		Concurrency:  h.options.concurrency,
		PingInterval: h.platform.PingInterval,
		StopLinger:   linger,
		GracePeriod:  h.options.grace,
		ReadyTimeout: h.options.readyTimeout,
		Refresh:      h.options.refresh,
		PingEarly:    h.options.pingEarly,
		FailOnKill:   h.options.failOnKill,
		JobTimeout:   h.options.jobTimeout,
		MaxCrashes:   h.options.maxCrashes,
		MaxResult:    h.options.maxResult,
		Offload:      h.options.offload,
		MaxChunk:     h.options.maxChunk,
		StreamBatch:  h.options.batch,
		Log:          h.log,
		Journal:      h.journal,
		Observer:     h.cache.watch(h.watched.observer()),
		Prepare:      h.cache.hydrate,
		OnReady: func(ctx context.Context, handler worker.Handler, ready protocol.Ready, first bool) error {
			if h.fit != nil {
				if err := h.fit.start(ctx, ready, handler, first); err != nil {
					return h.unfit(err, handler)
				}
			}
			if first {
				h.cache.begin(l, 0)
			}
			if h.ready != nil {
				h.ready(ready)
			}
			return nil
		},
	}, h.handler, api)
	h.watched.follow(w)
	return w.Run(l.fetch, l.work)
}

// keep runs a worker and, as the platform would, a new one where a job asked for it.
func (h *workerHost) keep(l lifecycle) error {
	for {
		reason, err := h.once(l)
		if l.fetch.Err() != nil || reason != worker.Refreshed {
			return err
		}
		h.log.Info("A job asked for a fresh worker: starting one.")
	}
}

func (h *workerHost) client() *client.Client {
	return client.New(client.Config{
		URLs:         h.platform.URLs,
		WorkerID:     h.platform.ID,
		Key:          h.platform.APIKey,
		UserAgent:    userAgent(),
		Concurrency:  h.options.concurrency,
		PingInterval: h.platform.PingInterval,
	})
}

// handler makes one life of the handler, behind its readiness probes if there are any.
func (h *workerHost) handler() worker.Handler {
	handler := h.bare()
	if len(h.options.probes) == 0 {
		return handler
	}
	return ready.Guard(handler, ready.NewGate(h.log, h.options.probes...))
}

func (h *workerHost) bare() worker.Handler {
	spec := h.options.spec
	if spec.echo {
		return echo.New()
	}
	var line program.Line
	switch {
	case h.printed != nil:
		line = h.printed.line
	case h.logs != nil:
		line = h.logs.line
	}
	return program.New(program.Options{
		Args:        spec.args(h.options.python),
		Env:         withOwnPath(h.env),
		Stdout:      h.stdout,
		Stderr:      h.stderr,
		Log:         h.log,
		WorkerID:    h.platform.ID,
		SyncThreads: h.options.syncThreads,
		Aggregate:   h.options.aggregate,
		Debugger:    h.options.debugger,
		LogLevel:    h.options.logLevel,
		NoShim:      h.options.noShim,
		ErrorLogs:   h.options.errorLogs,
		NameJobs:    h.logs != nil,
		Spool:       h.spool,
		Line:        line,
		Secrets:     h.secrets,
	})
}

// withOwnPath tells a program where this one is: what it mirrors by itself is copied by this program too.
func withOwnPath(env []string) []string {
	path, err := os.Executable()
	if err != nil {
		return env
	}
	return append(slices.Clip(env), config.Binary+"="+path)
}

// workerExit turns the end of a worker into the command's: work that is left unsettled has a code of its own, and so
// has a program that saw to its own --test_input, or found its own arguments wrong.
func workerExit(err error) error {
	if exit, ok := errors.AsType[*program.ExitError](err); ok && exit.State.Signal == 0 {
		switch {
		case exit.Local && exit.State.Code == 0:
			return nil
		case exit.Local, exit.Early && exit.State.Code == exitUsage:
			return &exitError{code: exit.State.Code, err: err}
		}
	}
	_, unsettled := errors.AsType[*worker.UnsettledError](err)
	_, unfinished := errors.AsType[*realtime.UnfinishedError](err)
	if unsettled || unfinished {
		return &exitError{code: exitUnsettled, err: err}
	}
	return err
}
