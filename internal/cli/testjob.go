package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/mistake"
	"runpodctl-worker/internal/protocol"
)

const (
	// progressEvery is how often a running job is looked at for progress to show.
	progressEvery = 50 * time.Millisecond
	// farewellTime is what the handler gets to end by itself, once its job has.
	farewellTime = 2 * time.Second
)

// testJob runs one job through a local Runpod of its own and prints it as a client of the hosted API
// would read it.
func (s *session) testJob(c *cli.Context, local emulator.Options) error {
	for _, name := range []string{
		flagNoWorker, flagPrintEnv, flagWorkers, flagEndpoint, flagPort, flagHost, flagMetrics, flagPprof, flagStateDir, flagLogDir,
	} {
		if c.IsSet(name) {
			return usagef("--%s runs one job and ends; --%s makes no sense beside it", flagTestInput, name)
		}
	}
	job, err := readJSON(flagTestInput, c.String(flagTestInput), s.Stdin)
	if err != nil {
		return err
	}
	if err := checkJob(flagTestInput, job); err != nil {
		return err
	}
	var want json.RawMessage
	if c.IsSet(flagTestOutput) {
		if want, err = readJSON(flagTestOutput, c.String(flagTestOutput), s.Stdin); err != nil {
			return err
		}
	}
	platform, err := config.WorkerFrom(s.Lookup)
	if err != nil {
		return usagef("%w", err)
	}
	options, err := s.readWorkerFlags(c, platform.InitTimeout)
	if err != nil {
		return err
	}

	view := newLiveView(s.Stderr, s.lively(c, s.Stderr))
	log, err := s.logger(c, view, s.localLookup, s.lively(c, s.Stderr))
	if err != nil {
		view.Close()
		return err
	}
	result, err := s.runTestJob(options, local, job, view, log)
	view.Close()
	if err != nil {
		return err
	}
	return s.printResult(result, want)
}

// testResult is a finished job and the items of its stream.
type testResult struct {
	view  jobView
	items [][]byte
}

func (s *session) runTestJob(options workerOptions, rules emulator.Options, job json.RawMessage, view *liveView, log *slog.Logger) (testResult, error) {
	life, endLife := watchSignals(s.Process, log, "the test ends here")
	defer endLife()
	rules.Log = log
	rules.Webhooks.AllowPrivate = true // it is this machine's own
	local, err := startLocal("127.0.0.1", 0, rules, log)
	if err != nil {
		return testResult{}, err
	}
	defer local.close()

	const endpoint = "local"
	client := &jobClient{base: local.base + "/v2/" + endpoint, http: &http.Client{}}
	defer client.http.CloseIdleConnections()
	// Whoever interrupts a test wants it to end, not to drain.
	work, endWork := context.WithCancel(life.fetch)
	ctx, end := context.WithCancelCause(work)
	ready, ended := make(chan struct{}, 1), make(chan struct{})
	options.linger = 0 // no second job can come
	host := s.localWorker(serveOptions{worker: options}, local.base, endpoint, log)
	host.stdout, host.stderr = view, view
	announce := host.ready
	host.ready = func(r protocol.Ready) {
		announce(r)
		select {
		case ready <- struct{}{}:
		default: // a second start, after a refresh
		}
	}
	go func() {
		defer close(ended)
		end(guard(func() error { return host.keep(lifecycle{fetch: ctx, work: work}) }))
	}()
	defer func() {
		end(nil)
		overdue := time.AfterFunc(farewellTime, endWork)
		<-ended
		overdue.Stop()
		endWork()
	}()

	select {
	case <-ready:
	case <-ctx.Done():
		return testResult{}, testEnd(ctx, life)
	}
	result, err := followJob(ctx, client, job, view)
	if ctx.Err() != nil {
		err = testEnd(ctx, life)
	}
	return result, err
}

// testEnd says why a test job did not get to its end.
func testEnd(ctx context.Context, life lifecycle) error {
	if life.fetch.Err() != nil {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	return context.Cause(ctx)
}

// followJob submits the job, shows what happens to it, and returns it when it has ended.
func followJob(ctx context.Context, client *jobClient, job json.RawMessage, view *liveView) (testResult, error) {
	id, err := client.submit(ctx, job)
	if err != nil {
		return testResult{}, fmt.Errorf("the job was refused: %w", err)
	}
	view.wait("running the job")
	watchCtx, endWatch := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- mistake.Catch(func() { watchProgress(watchCtx, client, id, view) }) }()
	var result testResult
	err = client.follow(ctx, id, func(item json.RawMessage) {
		result.items = append(result.items, item)
		view.item(item)
	})
	endWatch()
	if err = errors.Join(err, <-watched); err != nil {
		return result, err
	}
	result.view, err = client.view(ctx, id)
	return result, err
}

func watchProgress(ctx context.Context, client *jobClient, id string, view *liveView) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if v, err := client.view(ctx, id); err == nil && v.status() == protocol.InProgress {
			view.progress(v["output"])
		}
	}
}

// printResult prints the one document on stdout, and how it differs from what was wanted on stderr.
func (s *session) printResult(r testResult, want json.RawMessage) error {
	if len(r.items) > 0 {
		r.view["stream"] = slices.Concat([]byte("["), bytes.Join(r.items, []byte(",")), []byte("]"))
	}
	enc := json.NewEncoder(s.Stdout)
	enc.SetEscapeHTML(false)
	if isTerminal(s.Stdout) {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(r.view); err != nil {
		return fmt.Errorf("cannot print the result: %w", err)
	}
	if r.view.status() != protocol.Completed {
		return silent(exitFailed)
	}
	if want == nil {
		return nil
	}
	path, got := "output", r.view["output"]
	if len(r.items) > 0 && (len(got) == 0 || string(got) == "[]") {
		path, got = "stream", r.view["stream"] // a generator that does not aggregate
	}
	if diff := diffJSON(path, want, got); len(diff) > 0 {
		fmt.Fprintf(s.Stderr, "the output is not the expected one (--%s):\n", flagTestOutput)
		for _, line := range diff {
			fmt.Fprintln(s.Stderr, " ", line)
		}
		return silent(exitFailed)
	}
	return nil
}
