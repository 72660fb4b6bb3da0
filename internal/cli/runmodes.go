package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/program"
	"runpodctl-worker/internal/proc"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/ready"
	"runpodctl-worker/internal/realtime"
	"runpodctl-worker/internal/worker"
)

// queue is the worker of a queue-based endpoint.
func (h *workerHost) queue(l lifecycle) error {
	if fit, err := h.early(l.fetch); !fit {
		return err
	}
	defer h.openJournal()()
	reason, err := h.once(l)
	h.cache.end()
	switch reason {
	case worker.Refreshed:
		h.log.Info("A job asked for a fresh worker: this one ends.")
	case worker.HandlerExited:
		h.tellDown(err)
	default:
	}
	return workerExit(h.saidUnfit(err))
}

// early runs the early checks. Programs below learn that they have passed. A worker that was told to stop meanwhile
// is not fit either, which is no error.
func (h *workerHost) early(ctx context.Context) (fit bool, err error) {
	err = h.fit.early(ctx)
	switch {
	case ended(ctx):
		return false, nil
	case err != nil:
		return false, h.unfit(err, nil)
	}
	if h.fit.passed {
		h.env = append(slices.Clip(h.env), config.EarlyChecksDone+"=1")
	}
	return true, nil
}

// saidUnfit passes on what the program's own SDK found, and ended it for.
func (h *workerHost) saidUnfit(err error) error {
	found, ok := errors.AsType[*program.UnhealthyError](err)
	if !ok {
		return err
	}
	h.log.Error("The handler's program says that it is unfit: " + found.Error())
	return h.unfit(&unfitError{found.Check, found.Reason}, nil)
}

// realtime is the worker that takes jobs from requests to its own port. It runs no checks, as the SDK's does not.
func (h *workerHost) realtime(l lifecycle) error {
	port, err := config.RealtimePortFrom(h.lookup)
	switch {
	case err != nil || port == 0:
		return usagef("a realtime worker needs a port: set %s to it", config.RealtimePort)
	case h.platform.EndpointID == "":
		return usagef("a realtime worker needs the id of its endpoint for its route: set %s", config.EndpointID)
	}
	if h.cache.hydrate(l.fetch); ended(l.fetch) {
		return nil
	}
	defer h.cache.end()
	api := h.client()
	defer api.Close()
	return workerExit(realtime.Serve(l.fetch, l.work, realtime.Config{
		Endpoint: h.platform.EndpointID,
		Listen: func(ctx context.Context) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		},
		ReadyTimeout: h.options.readyTimeout, GracePeriod: h.options.grace, Log: h.log,
		OnReady: func(context.Context, protocol.Ready) error {
			h.cache.begin(l, lookInterval)
			return nil
		},
		Heartbeat: func(ctx context.Context, held func() []string) {
			worker.Heartbeat(ctx, worker.Config{PingInterval: h.platform.PingInterval, Log: h.log, Observer: h.watched.observer()}, api, held)
		},
	}, h.watched.requests(l.fetch, h.handler())))
}

// supervise is the worker of a load-balanced endpoint: all checks, then the program, which serves its port itself.
func (h *workerHost) supervise(l lifecycle) error {
	if h.options.spec.echo {
		return usagef("--%s %s supervises a program, and echo is none", flagMode, modeLB)
	}
	if fit, err := h.early(l.fetch); !fit {
		return err
	}
	err := h.fit.start(l.fetch, protocol.Ready{}, nil, true)
	switch {
	case ended(l.fetch):
		return nil
	case err != nil:
		return h.unfit(err, nil)
	}
	if h.cache.hydrate(l.fetch); ended(l.fetch) {
		return nil
	}
	defer h.cache.end()
	stdout, stderr := h.secrets.Writer(h.stdout), h.secrets.Writer(h.stderr)
	defer stdout.Flush()
	defer stderr.Flush()
	p, err := proc.Start(proc.Options{
		Args: h.options.spec.args(h.options.python), Env: h.env, Stdout: stdout, Stderr: stderr,
	})
	if err != nil {
		return err
	}
	h.watched.enter(worker.Loading)
	err = h.attend(l, p)
	h.watched.enter(worker.Draining)
	return errors.Join(err, h.endProgram(l, p))
}

// attend waits for the program's probes, then watches it until it ends, its readiness is lost, or the first signal.
func (h *workerHost) attend(l lifecycle, p *proc.Process) error {
	ctx, cancel := context.WithCancel(l.fetch)
	defer cancel()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		select {
		case <-p.Exited():
			cancel()
		case <-ctx.Done():
		}
	}()
	err := h.awaitAndWatch(ctx, func() { h.cache.begin(l, lookInterval) })
	cancel()
	<-stop
	select {
	case <-p.Exited():
	default:
		return err
	}
	if state := p.State(); state != (proc.State{}) {
		return fmt.Errorf("the program ended (%s)", state)
	}
	h.log.Info("The program ended.")
	return nil
}

// awaitAndWatch returns when readiness was not reached in time, when it is lost, and, without an error, when ctx ends.
func (h *workerHost) awaitAndWatch(ctx context.Context, isReady func()) error {
	gate := ready.NewGate(h.log, h.options.probes...)
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit := h.options.readyTimeout; limit > 0 && len(h.options.probes) > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it was not ready after %s", limit))
	}
	err := gate.Await(limited)
	cancel()
	if err == nil {
		h.log.Info("The program is ready.")
		h.watched.enter(worker.Ready)
		isReady()
		err = gate.Watch(ctx, func() bool { return false })
	}
	if ended(ctx) {
		return nil
	}
	return err
}

// endProgram ends the program: TERM, the grace period or until the second signal, KILL.
func (h *workerHost) endProgram(l lifecycle, p *proc.Process) error {
	ctx, cancel := context.WithTimeout(l.work, h.graceOr(handlerStopPeriod))
	defer cancel()
	return p.Stop(ctx)
}

func (h *workerHost) graceOr(normal time.Duration) time.Duration {
	if h.options.grace > 0 {
		return h.options.grace
	}
	return normal
}
