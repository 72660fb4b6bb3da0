package cli

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu"
	"runpodctl-worker/internal/checks/host"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/handler/program"
)

// Flags of the doctor.
const (
	flagPhase   = "phase"
	flagTarget  = "target"
	flagWatch   = "watch"
	flagOnly    = "only"
	flagSkip    = "skip"
	flagJSON    = "json"
	flagPlain   = "plain"
	flagChecks  = "checks"
	flagTimeout = "timeout"
	flagTotal   = "total-timeout"
	flagGPUs    = "gpus"
	flagStrict  = "strict"
	flagList    = "list"
)

func doctorFlags() []flagGroup {
	return []flagGroup{
		{"Which checks", []cli.Flag{
			&cli.StringFlag{Name: flagPhase, Value: "all", Usage: "`PHASE`: early (before the model loads), start (before jobs are taken) or all"},
			&cli.StringSliceFlag{Name: flagOnly, Usage: "only the checks with these `IDS`, as --list shows them, with commas between; may be repeated"},
			&cli.StringSliceFlag{Name: flagSkip, Usage: "all but the checks with these `IDS`; may be repeated"},
			&cli.StringFlag{Name: flagChecks, Usage: "YAML `FILE` with checks of your own"},
			&cli.StringFlag{Name: flagHandler, Usage: "start this handler (`SPEC`: handler.py or handler.py:function; any command after --) and run the checks that it registers"},
			&cli.StringFlag{Name: flagPython, Value: "python3", Usage: "interpreter (`EXE`) for --handler"},
			&cli.DurationFlag{Name: flagReady, Usage: "how long the handler may load; 0 = no limit (default: $RUNPOD_INIT_TIMEOUT seconds, else 420s)"},
			&cli.BoolFlag{Name: flagList, Usage: "list the checks and end"},
		}},
		{"What is asked for", []cli.Flag{
			&cli.IntFlag{Name: flagGPUs, Usage: "`N` GPUs must be there (default: $RUNPOD_GPU_COUNT, else any number)"},
			&cli.StringFlag{Name: flagTarget, Usage: "`HOST:PORT` that the network check connects to (default: the host of $RUNPOD_WEBHOOK_GET_JOB, else the public API)"},
			&cli.DurationFlag{Name: flagTimeout, Usage: "no check may take longer than this (default: each has a limit of its own)"},
			&cli.DurationFlag{Name: flagTotal, Usage: "all checks together may not take longer than this; 0 = as long as they need"},
			&cli.BoolFlag{Name: flagStrict, Usage: "warnings count as failures"},
		}},
		{"How it is shown", []cli.Flag{
			&cli.BoolFlag{Name: flagJSON, Usage: "one JSON document on standard output"},
			&cli.BoolFlag{Name: flagPlain, Usage: "lines instead of the interactive screen, as without a terminal"},
			&cli.DurationFlag{Name: flagWatch, Usage: "run again and again with this much time between"},
		}},
		{"General", generalFlags()},
	}
}

// examination reads the flags.
func (s *session) examination(ctx context.Context, c *cli.Context) (*examination, error) {
	x := &examination{watch: c.Duration(flagWatch), strict: c.Bool(flagStrict), color: s.lively(c, s.Stdout)}
	if err := refuseNegative(c, flagWatch, flagTimeout, flagTotal, flagReady); err != nil {
		return nil, err
	}
	x.runner = checks.NewRunner(checks.Options{
		Cap: c.Duration(flagTimeout), Total: c.Duration(flagTotal), SideBySide: sideBySide, Clean: s.secrets.String,
	})
	// Nothing is logged but what concerns the handler, which stands in its row; a bad flag is one all the same.
	if _, err := s.logger(c, io.Discard, s.Lookup, false); err != nil {
		return nil, err
	}
	phases, err := phasesOf(c.String(flagPhase))
	if err != nil {
		return nil, err
	}
	cfg := checks.ConfigFrom(s.Lookup)
	if most := c.Duration(flagTimeout); most > 0 && most < cfg.NetworkTimeout.Value {
		cfg.NetworkTimeout = checks.Knob[time.Duration]{Value: most, Origin: "--" + flagTimeout}
	}
	if cfg, err = withGPUs(c, cfg); err != nil {
		return nil, err
	}
	target := c.String(flagTarget)
	if target != "" {
		if err := host.ValidTarget(target); err != nil {
			return nil, usagef("--%w", err)
		}
	}
	suite, err := newSuite(ctx, cfg, gpu.New(gpu.Options{Config: cfg, Env: s.Environ()}), target, c.String(flagChecks))
	if err != nil {
		return nil, err
	}
	if x.handler, err = s.doctorHandler(c, phases); err != nil {
		return nil, err
	}
	if x.handler != nil {
		if err := suite.Add(x.handler.check()); err != nil { // by a name in the file
			return nil, usagef("--%s %s: %w by the handler's own row; choose another name", flagChecks, c.String(flagChecks), err)
		}
	}
	for _, name := range []string{flagOnly, flagSkip} {
		if c.IsSet(name) && len(idList(c.StringSlice(name))) == 0 {
			return nil, usagef("--%s names no check", name)
		}
	}
	filter := checks.Filter{Only: idList(c.StringSlice(flagOnly)), Skip: idList(c.StringSlice(flagSkip))}
	if x.handler != nil {
		filter, x.handler.picked = splitRegistered(filter)
	}
	x.steps, err = filter.Apply(cfg.Switches.Apply(suite.Plan(phases...)))
	if err != nil {
		return nil, usagef("%w", err)
	}
	return x, nil
}

// withGPUs is the configuration with the number of GPUs that the flag asks for, if it does.
func withGPUs(c *cli.Context, cfg checks.Config) (checks.Config, error) {
	switch n := c.Int(flagGPUs); {
	case !c.IsSet(flagGPUs):
		return cfg, nil
	case n < 0:
		return cfg, usagef("--%s %d: want 0 or more", flagGPUs, n)
	default:
		return cfg.WithGPUCount(n, "--"+flagGPUs), nil
	}
}

func phasesOf(name string) ([]checks.Phase, error) {
	switch name {
	case "early":
		return []checks.Phase{checks.Early}, nil
	case "start":
		return []checks.Phase{checks.Start}, nil
	case "all":
		return []checks.Phase{checks.Early, checks.Start}, nil
	}
	return nil, usagef("--%s %q: want early, start or all", flagPhase, name)
}

// idList takes "a,b" and "a", "b" alike.
func idList(values []string) []string {
	var ids []string
	for _, value := range values {
		ids = append(ids, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return ids
}

// doctorHandler is the handler that was named, nil where none was.
func (s *session) doctorHandler(c *cli.Context, phases []checks.Phase) (*doctorHandler, error) {
	if c.String(flagHandler) == "" && len(s.command) == 0 {
		return nil, nil //nolint:nilnil // no handler is a good answer
	}
	spec, err := findHandler(c.String(flagHandler), s.command, s.Lookup)
	if err != nil {
		return nil, err
	}
	if spec.echo {
		return nil, usagef("--%s echo: it has no program to check", flagHandler)
	}
	platform, err := config.WorkerFrom(s.Lookup)
	if err != nil {
		return nil, usagef("%w", err)
	}
	if len(phases) == 1 && phases[0] == checks.Early {
		return nil, usagef("a handler is checked in the start phase, and --%s says early", flagPhase)
	}
	options := workerOptions{spec: spec, python: c.String(flagPython)}
	if err := options.checkProgram(); err != nil {
		return nil, err
	}
	limit := registeredLimit
	if most := c.Duration(flagTimeout); most > 0 {
		limit = min(limit, most)
	}
	return &doctorHandler{
		name: strings.Join(spec.args(options.python), " "), loading: loadingTime(c, platform.InitTimeout), limit: limit,
		make: func(output io.Writer) *program.Program {
			return program.New(program.Options{
				Args: spec.args(options.python), Env: withOwnPath(s.Environ()), Stdout: output, Stderr: output,
				Log: s.doctorLog(c, output), Secrets: s.secrets, LogLevel: c.String(flagLogLevel),
			})
		},
	}, nil
}

// doctorLog logs to the output of the handler. The flags have been looked at.
func (s *session) doctorLog(c *cli.Context, output io.Writer) *slog.Logger {
	log, err := s.logger(c, output, s.Lookup, false)
	if err != nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}
