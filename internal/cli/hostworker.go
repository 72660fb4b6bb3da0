package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/echo"
	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/protocol/client"
	"runpodctl-worker/internal/worker"
)

// A handler that keeps dying is not started for ever: maxCrashes ends in a row, each within crashWindow, end the worker.
const (
	maxCrashes   = 3
	crashWindow  = 10 * time.Second
	restartPause = 500 * time.Millisecond
)

// workerHost joins a handler, a client and the loop into one worker, as often as one is needed.
type workerHost struct {
	options        workerOptions
	platform       config.Worker
	env            []string // of the handler's program
	stdout, stderr io.Writer
	log            *slog.Logger
	ready          func(protocol.Ready) // called at each start; may be nil
	fit            *fitness             // nil: no fitness checks
}

// once runs one worker to its end.
func (h *workerHost) once(l lifecycle) (worker.Reason, error) {
	api := client.New(client.Config{
		URLs:         h.platform.URLs,
		WorkerID:     h.platform.ID,
		Key:          h.platform.APIKey,
		UserAgent:    userAgent(),
		Concurrency:  h.options.concurrency,
		PingInterval: h.platform.PingInterval,
	})
	defer api.Close()
	handler := h.handler()
	linger := h.options.linger
	if linger == 0 {
		linger = -1 // the worker's word for none
	}
	return worker.New(worker.Config{
		Concurrency:  h.options.concurrency,
		PingInterval: h.platform.PingInterval,
		StopLinger:   linger,
		GracePeriod:  h.options.grace,
		ReadyTimeout: h.options.readyTimeout,
		Refresh:      h.options.refresh,
		Log:          h.log,
		OnReady: func(ctx context.Context, ready protocol.Ready) error {
			if h.fit != nil {
				if err := h.fit.start(ctx, ready, handler); err != nil {
					return h.unfit(err)
				}
			}
			if h.ready != nil {
				h.ready(ready)
			}
			return nil
		},
	}, handler, api).Run(l.fetch, l.work)
}

// keep runs a worker and, as the platform would, a new one where a job asked for it or the handler died.
func (h *workerHost) keep(l lifecycle) error {
	for crashes := 0; ; {
		started := time.Now()
		reason, err := h.once(l)
		switch {
		case l.fetch.Err() != nil, reason == worker.NotStarted, reason == worker.Drained:
			return err
		case reason == worker.Refreshed:
			h.log.Info("A job asked for a fresh worker: starting one.")
			continue
		}
		if time.Since(started) > crashWindow {
			crashes = 0
		}
		if crashes++; crashes == maxCrashes {
			return fmt.Errorf("the handler died %d times in a row: %w", crashes, err)
		}
		h.log.Error(fmt.Sprintf("%v; starting it again", err))
		select {
		case <-time.After(restartPause):
		case <-l.fetch.Done():
			return nil
		}
	}
}

func (h *workerHost) handler() worker.Handler {
	spec := h.options.spec
	if spec.echo {
		return echo.New()
	}
	return program.New(program.Options{
		Args:        spec.args(h.options.python),
		Env:         h.env,
		Stdout:      h.stdout,
		Stderr:      h.stderr,
		Log:         h.log,
		WorkerID:    h.platform.ID,
		SyncThreads: h.options.syncThreads,
		Aggregate:   h.options.aggregate,
		Debugger:    h.options.debugger,
		LogLevel:    h.options.logLevel,
	})
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
	if _, ok := errors.AsType[*worker.UnsettledError](err); ok {
		return &exitError{code: exitUnsettled, err: err}
	}
	return err
}

const (
	unfitPingTime = 2 * time.Second        // what the last word to the platform may take
	unfitStopTime = 500 * time.Millisecond // what the handler's program gets to end by itself
)

// unfit ends a worker that a check found unfit, whatever hangs: the platform is told within a bound. Any other error
// is passed on.
func (h *workerHost) unfit(err error) error {
	found, ok := errors.AsType[*unfitError](err)
	if !ok {
		return err
	}
	api := h.client()
	defer api.Close()
	ctx, cancel := context.WithTimeout(context.Background(), unfitPingTime)
	defer cancel()
	_ = api.Unhealthy(ctx, found.check, found.reason) // the exit must not depend on it
	return silent(exitFailed)
}
