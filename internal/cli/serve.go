package cli

import (
	"cmp"
	"errors"
	"log/slog"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/emulator"
)

// Flags of serve.
const (
	flagHost       = "host"
	flagPort       = "port"
	flagEndpoint   = "endpoint-id"
	flagWorkers    = "workers"
	flagNoWorker   = "no-worker"
	flagPrintEnv   = "print-env"
	flagWorkerID   = "worker-id"
	flagMaxRetries = "max-retries"
)

const maxWorkers = 256

const drainsFirst = "the jobs at hand are finished first"

func serveCommand(s *session) *cli.Command {
	return s.newCommand("serve", "A local Runpod: the endpoint API, a queue, and a worker that runs your handler.", []string{
		"serve --handler handler.py",
		"serve --handler handler.py --test_input '{\"input\": {\"name\": \"Ada\"}}'",
		"serve -- bash start.sh",
	}, serveFlags, s.serve)
}

func serveFlags() []flagGroup {
	return []flagGroup{
		{"Your handler", append(handlerFlags(), offloadFlag())},
		{"One job instead of an endpoint", jobFlags()},
		{"The endpoint", endpointFlags()},
		{"Who may call", accessFlags()},
		{"Stopping", stopFlags()},
		{"General", generalFlags()},
		{"Limits of the local Runpod, as hosted unless said otherwise", append(limitFlags(), retriesFlag())},
		{"Its times", timeFlags()},
	}
}

func endpointFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagHost, Aliases: []string{"rp_api_host"}, Value: "localhost", Usage: "`ADDRESS` to listen on; beyond this machine only with a key"},
		&cli.IntFlag{Name: flagPort, Aliases: []string{"rp_api_port"}, Value: 8000, Usage: "port to listen on; 0 = any free one"},
		&cli.StringSliceFlag{Name: flagEndpoint, Value: cli.NewStringSlice("local"), Usage: "`ID` of an endpoint; may be repeated"},
		&cli.IntFlag{Name: flagWorkers, Value: 1, Usage: "workers for each endpoint"},
		&cli.StringFlag{Name: flagWorkerID, Usage: "`ID` of the worker (default: a random one)"},
		&cli.BoolFlag{Name: flagNoWorker, Usage: "only the queue: workers of your own take the jobs"},
		&cli.BoolFlag{Name: flagPrintEnv, Usage: "print the environment for a worker of your own, for a shell to source"},
		&cli.StringFlag{Name: flagLogDir, Usage: "`DIR` for a file of JSON lines for each job: what it prints, and what is said about it"},
		&cli.BoolFlag{Name: "rp_serve_api", Hidden: true, Usage: "what this command does anyway"},
		&cli.IntFlag{Name: "rp_api_concurrency", Hidden: true, Usage: "the SDK's word for --" + flagWorkers},
	}
}

func retriesFlag() cli.Flag {
	return &cli.IntFlag{Name: flagMaxRetries, Value: 1, Usage: "how often a job goes to another worker when the one that took it falls silent"}
}

// serveOptions are the flags of serve, checked.
type serveOptions struct {
	worker    workerOptions
	host      string
	port      int
	endpoints []string
	workers   int
	noWorker  bool
	printEnv  bool
	workerID  string
	emulator  emulator.Options
	logs      *jobLogs // nil: none
}

func (s *session) serve(c *cli.Context) error {
	log, err := s.logger(c, s.Stderr, s.localLookup, s.lively(c, s.Stderr))
	if err != nil {
		return err
	}
	if c.IsSet(flagTestInput) {
		rules, err := readRules(c)
		if err != nil {
			return err
		}
		return s.testJob(c, rules)
	}
	if c.IsSet(flagTestOutput) {
		return usagef("--%s goes with --%s", flagTestOutput, flagTestInput)
	}
	logs, err := s.openJobLogs(c, log)
	if err != nil {
		return err
	}
	defer logs.close()
	log = logs.through(log)
	o, err := s.readServeFlags(c, log)
	if err != nil {
		return err
	}
	if logs != nil {
		o.logs, o.emulator.JobLogs = logs, logs.dir
	}
	return s.serveEndpoints(o, log)
}

// localLookup hides the platform's mark from the log: at home, lines are for people.
func (s *session) localLookup(name string) (string, bool) {
	if name == config.EndpointID {
		return "", false
	}
	return s.Lookup(name)
}

func (s *session) readServeFlags(c *cli.Context, log *slog.Logger) (serveOptions, error) {
	o := serveOptions{
		host: c.String(flagHost), port: c.Int(flagPort),
		endpoints: c.StringSlice(flagEndpoint),
		workers:   c.Int(flagWorkers), noWorker: c.Bool(flagNoWorker),
		printEnv: c.Bool(flagPrintEnv), workerID: c.String(flagWorkerID),
	}
	if c.IsSet("rp_api_concurrency") && !c.IsSet(flagWorkers) {
		o.workers = c.Int("rp_api_concurrency")
	}
	if o.port < 0 || o.port > 65535 {
		return o, usagef("--%s %d: want 0 to 65535", flagPort, o.port)
	}
	if o.workers < 1 || o.workers > maxWorkers {
		return o, usagef("--%s %d: want 1 to %d", flagWorkers, o.workers, maxWorkers)
	}
	if o.workerID != "" && (o.workers > 1 || len(o.endpoints) > 1) {
		return o, usagef("--%s names one worker, and there are to be several", flagWorkerID)
	}
	var err error
	if o.emulator, err = readRules(c); err != nil {
		return o, err
	}
	if err = s.readAccessFlags(c, log, &o.emulator); err != nil {
		return o, err
	}
	o.emulator.Endpoints, o.emulator.Log = o.endpoints, log
	if o.noWorker {
		return o, nil
	}
	platform, err := config.WorkerFrom(s.Lookup)
	if err != nil {
		return o, usagef("%w", err)
	}
	o.worker, err = s.readWorkerFlags(c, platform.InitTimeout)
	if errors.Is(err, errNoHandler) {
		log.Warn("no handler found here: the built-in echo answers each job with its own input")
		o.worker.spec, err = handlerSpec{echo: true}, nil
	}
	return o, err
}

func (s *session) serveEndpoints(o serveOptions, log *slog.Logger) error {
	meaning := drainsFirst
	if o.noWorker {
		meaning = "the queue is gone with it"
	}
	life, endLife := watchSignals(s.Process, log, meaning)
	defer endLife()
	s.relaxGC(queueMemory)
	local, err := startLocal(o.host, o.port, o.emulator, log)
	if err != nil {
		return err
	}
	defer local.close()

	if o.printEnv {
		endpoint := o.endpoints[0]
		env := platformEnv(workerURLs(local.base, endpoint), endpoint, cmp.Or(o.workerID, randomID()), o.emulator.WorkerKey)
		// An official worker checks the internet at start-up; at home there may be none.
		printEnv(s.Stdout, append(env, config.SkipSystem+"=true", config.SkipGPU+"=true"))
	}
	handler := "a worker of your own"
	if !o.noWorker {
		handler = o.worker.spec.String()
	}
	printBanner(s.Stderr, local.base, o.endpoints, o.emulator.APIKey != "", handler)
	if o.noWorker {
		<-life.fetch.Done()
		return nil
	}
	return s.serveWorkers(o, local.base, life, log)
}
