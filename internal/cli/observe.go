package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/journal"
	"runpodctl-worker/internal/metrics"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/volume"
	"runpodctl-worker/internal/worker"
)

// Flags of run that let somebody look at the worker.
const (
	flagMetrics   = "metrics-addr"
	flagPprof     = "pprof"
	flagErrorLogs = "error-logs"
)

// checking is the phase of a worker that does not exist yet.
const checking = "checking"

func observeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagMetrics, Usage: "show metrics, probes and the worker's state at `HOST:PORT`; of a port alone, for this machine only"},
		&cli.BoolFlag{Name: flagPprof, Usage: "Go profiles too, where --" + flagMetrics + " is for this machine only"},
	}
}

// observeOptions are these flags, checked.
type observeOptions struct {
	addr     string // empty: nobody looks
	profiles bool
}

func readObserveFlags(c *cli.Context) (o observeOptions, err error) {
	o.profiles = c.Bool(flagPprof)
	if !c.IsSet(flagMetrics) {
		if o.profiles {
			return o, usagef("--%s goes with --%s", flagPprof, flagMetrics)
		}
		return o, nil
	}
	if o.addr, err = metrics.Address(c.String(flagMetrics)); err != nil {
		return o, usagef("--%s %q: %w", flagMetrics, c.String(flagMetrics), err)
	}
	if o.profiles && !metrics.Local(o.addr) {
		return o, usagef("--%s shows the memory of the worker: it goes with a --%s for this machine only, not %s", flagPprof, flagMetrics, o.addr)
	}
	return o, nil
}

// observed is a worker that can be looked at. A nil one cannot.
type observed struct {
	metrics *metrics.Metrics
	server  *metrics.Server
	look    atomic.Pointer[func() metrics.State]
	journal atomic.Pointer[journal.Journal]
}

// observe begins to listen.
func observe(o observeOptions, platform config.Worker, log *slog.Logger) (*observed, error) {
	if o.addr == "" {
		return nil, nil //nolint:nilnil // nobody looks
	}
	ob := new(observed)
	ob.metrics = metrics.New(metrics.Options{
		Version: version, Commit: revision(), WorkerID: platform.ID, EndpointID: platform.EndpointID,
		PingInterval: platform.PingInterval, State: ob.state, Journal: ob.depth,
	})
	var err error
	if ob.server, err = metrics.Serve(o.addr, ob.metrics, o.profiles, log); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("--%s %s: that port is taken", flagMetrics, o.addr)
		}
		return nil, fmt.Errorf("--%s: %w", flagMetrics, err)
	}
	log.Info("The worker can be looked at: http://" + ob.server.Addr() + "/status.json, /metrics, /healthz, /readyz")
	return ob, nil
}

func (o *observed) close() {
	if o != nil {
		o.server.Close()
	}
}

// through is the log with an ear to it.
func (o *observed) through(log *slog.Logger) *slog.Logger {
	if o == nil {
		return log
	}
	return tee(log, func(level slog.Level, job, message string) {
		o.metrics.Complained(metrics.Problem{At: time.Now().UTC(), Level: levelName(level), Job: job, Message: message})
	})
}

// checked hears of the results of checks.
func (o *observed) checked() func(checks.Row) {
	if o == nil {
		return nil
	}
	return func(row checks.Row) {
		o.metrics.Checked(metrics.Check{ID: row.Step.ID, Result: row.Result.Status.String(), Summary: row.Result.Summary})
	}
}

// copied hears of what the cache has copied.
func (o *observed) copied() func(direction string, r volume.Report) {
	if o == nil {
		return nil
	}
	return func(direction string, r volume.Report) {
		o.metrics.Cached(direction, metrics.Copied{Files: r.Files, Bytes: r.Bytes, Seconds: r.Seconds})
	}
}

// observer hears of what the worker does.
func (o *observed) observer() worker.Observer {
	if o == nil {
		return worker.Observer{}
	}
	m := o.metrics
	return worker.Observer{
		Took:      m.Took,
		Started:   func(protocol.Job) { m.Started() },
		Returned:  func(_ protocol.Job, ran time.Duration) { m.Returned(ran) },
		Ended:     func(_ protocol.Job, how worker.End, wait time.Duration) { m.Ended(string(how), wait) },
		Pinged:    m.Pinged,
		Restarted: m.Restarted,
	}
}

// follow has the state be that of a worker.
func (o *observed) follow(w *worker.Worker) {
	if o != nil {
		o.show(func() metrics.State { return stateOf(w.Status()) })
	}
}

func (o *observed) show(state func() metrics.State) { o.look.Store(&state) }

// enter says what a worker does that has no jobs.
func (o *observed) enter(phase worker.Phase) {
	if o != nil {
		o.show(func() metrics.State { return metrics.State{Phase: string(phase)} })
	}
}

// keeps has the depth be that of a journal.
func (o *observed) keeps(j *journal.Journal) {
	if o != nil {
		o.journal.Store(j)
	}
}

func (o *observed) depth() metrics.Depth {
	j := o.journal.Load()
	if j == nil {
		return metrics.Depth{}
	}
	results, size := j.Waiting()
	return metrics.Depth{Kept: true, Results: results, Bytes: size}
}

func (o *observed) state() metrics.State {
	if look := o.look.Load(); look != nil {
		return (*look)()
	}
	return metrics.State{Phase: checking}
}

func stateOf(status worker.Status) metrics.State {
	state := metrics.State{Phase: string(status.Phase), Slots: status.Slots, Jobs: make([]metrics.Job, len(status.Jobs))}
	for i, job := range status.Jobs {
		state.Jobs[i] = metrics.Job{ID: job.ID, BatchID: job.BatchID, State: string(job.State), Taken: job.Taken}
	}
	return state
}
