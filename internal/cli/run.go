package cli

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/proc"
)

// localJobFile is what the SDK runs where there is no platform to take jobs from.
const localJobFile = "test_input.json"

// Flags of run.
const (
	flagMode       = "mode"
	flagNoShim     = "no-shim"
	flagReadyProbe = "ready"
	flagJobTimeout = "job-timeout"
	flagOnKill     = "on-kill"
	flagMaxCrashes = "max-crashes"
	flagPingEarly  = "ping-early"
	flagStateDir   = "state-dir"
	flagHideKey    = "hide-key"
	flagBatch      = "stream-batch"
)

// The kinds of worker.
const (
	modeAuto     = "auto"
	modeQueue    = "queue"
	modeRealtime = "realtime"
	modeLB       = "lb"
)

func runCommand(s *session) *cli.Command {
	return s.newCommand("run", "The entrypoint of a container: checks the machine, takes jobs from Runpod and runs them with your handler.", []string{
		"run -- python -u handler.py",
		"run --handler handler.py --concurrency 4",
		"run --no-shim --ready http://localhost:9000/health -- bash start.sh",
	}, runFlags, s.run)
}

func runFlags() []flagGroup {
	return []flagGroup{
		{"Your handler", slices.Concat(handlerFlags(), []cli.Flag{
			&cli.BoolFlag{Name: flagNoShim, Usage: "keep the worker's own runpod module away from the program: its SDK talks to the worker over loopback HTTP"},
			&cli.StringSliceFlag{Name: flagReadyProbe, Usage: "no job before this `PROBE` holds: a URL, tcp:HOST:PORT or exec:COMMAND; may be repeated"},
			&cli.BoolFlag{Name: flagHideKey, Usage: "keep the API keys out of the program's environment (tidiness, not a wall)"},
		})},
		{"The worker", []cli.Flag{
			&cli.StringFlag{Name: flagMode, Value: modeAuto, Usage: "`MODE`: queue, realtime, lb (a load-balanced endpoint: no job loop), or auto: realtime where $RUNPOD_REALTIME_PORT is set, else queue"},
			&cli.StringFlag{Name: flagChecks, Usage: "YAML `FILE` with fitness checks of your own"},
			&cli.DurationFlag{Name: flagJobTimeout, Usage: "how long one job may run; 0 = as long as it needs"},
			&cli.IntFlag{Name: flagMaxCrashes, Value: 1, Usage: "a job that took the program down `N` times is not run again"},
			&cli.StringFlag{Name: flagStateDir, Usage: "local `DIR` for the journal of what this worker owes, which survives its end; none = no journal (default: $XDG_STATE_HOME, /var/lib or the temporary directory)"},
			&cli.BoolFlag{Name: flagPingEarly, Usage: "heartbeats begin before the handler is loaded, not after"},
		}},
		{"Warm directories", cacheFlags()},
		{"Results", append(sizeFlags(), offloadFlag(), &cli.BoolFlag{Name: flagBatch, Usage: "items of a stream that are text and come within 60ms are joined and posted as one"})},
		{"One job instead of the platform's", jobFlags()},
		{"Stopping", slices.Concat(stopFlags(), []cli.Flag{
			&cli.StringFlag{Name: flagOnKill, Value: onKillRelease, Usage: "what happens to jobs that are cut short (`WORD`): release, and the platform gives them to another worker, or fail"},
		})},
		{"Who looks at it", observeFlags()},
		{"General", generalFlags()},
	}
}

func (s *session) run(c *cli.Context) error {
	if c.IsSet(flagTestInput) {
		return s.testJob(c, emulator.Options{})
	}
	platform, err := config.WorkerFrom(s.Lookup)
	if err != nil {
		return usagef("%w", err)
	}
	mode, err := s.mode(c.String(flagMode))
	if err != nil {
		return err
	}
	if mode == modeQueue {
		switch {
		case platform.URLs.GetJob == "":
			return s.runWithoutPlatform(c)
		case platform.URLs.PostOutput == "":
			return usagef("%s is set but %s is not: results would have nowhere to go", config.GetJob, config.PostOutput)
		}
	}
	log, err := s.logger(c, s.Stderr, s.Lookup, s.lively(c, s.Stderr))
	if err != nil {
		return err
	}
	options, err := s.readRunFlags(c, platform.InitTimeout)
	if err != nil {
		return err
	}
	looked, err := readObserveFlags(c)
	if err != nil {
		return err
	}
	watched, err := observe(looked, platform, log)
	if err != nil {
		return err
	}
	defer watched.close()
	log = watched.through(log)
	if endReaping, err := proc.Adopt(); err != nil {
		log.Warn("Orphans of the handler are not reaped here.", slog.Any("error", err))
	} else {
		defer endReaping()
	}
	host := &workerHost{
		options: options, platform: platform, env: handlerEnv(s.Environ(), options.hideKey),
		stdout: s.Stdout, stderr: s.Stderr, log: log, secrets: s.secrets,
		lookup: s.Lookup, watched: watched,
		fit: &fitness{
			lookup: s.Lookup, env: s.Environ(), args: options.spec.command, file: c.String(flagChecks), log: log,
			clean: s.secrets.String, told: watched.checked(),
		},
	}
	if isJSON(log) {
		host.printed = newProgramLog(log, s.secrets)
		defer host.printed.close()
		host.env = append(slices.Clip(host.env), config.LogFormat+"=json")
	} else {
		host.env = append(slices.Clip(host.env), config.LogFormat+"=text")
	}
	meaning := drainsFirst
	if mode == modeLB {
		meaning = "the program is ended"
	}
	life, endLife := watchSignals(s.Process, log, meaning)
	defer endLife()
	if host.cache, err = s.openCache(options.cache, options.grace, watched.copied(), log); err != nil {
		return err
	}
	if _, _, err := host.fit.suite(life.fetch, checks.ConfigFrom(s.Lookup), false); err != nil {
		return err // a file of checks that makes no sense is the caller's mistake, not the machine's
	}
	s.relaxGC(workerMemory)
	switch mode {
	case modeRealtime:
		return host.realtime(life)
	case modeLB:
		return host.supervise(life)
	}
	return host.queue(life)
}

// mode says which kind of worker this is.
func (s *session) mode(flag string) (string, error) {
	switch flag {
	case modeQueue, modeRealtime, modeLB:
		return flag, nil
	case modeAuto:
		port, err := config.RealtimePortFrom(s.Lookup)
		switch {
		case err != nil:
			return "", usagef("%w", err)
		case port == 0:
			return modeQueue, nil
		}
		return modeRealtime, nil
	}
	return "", usagef("--%s %q: want auto, queue, realtime or lb", flagMode, flag)
}

// handlerEnv is what the handler's program gets of the worker's environment.
func handlerEnv(env []string, hideKey bool) []string {
	if !hideKey {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == config.AIAPIKey || name == config.APIKey
	})
}

// runWithoutPlatform does what the SDK does at home, one job from a file, or says what else there is to do.
func (s *session) runWithoutPlatform(c *cli.Context) error {
	if _, err := os.Stat(localJobFile); errors.Is(err, fs.ErrNotExist) {
		return usagef("%s is not set, so there is no platform to take jobs from; to run one job here give --%s or put a %s into this folder; for a local endpoint use `runpodctl-worker serve`",
			config.GetJob, flagTestInput, localJobFile)
	}
	if err := c.Set(flagTestInput, "@"+localJobFile); err != nil {
		return err
	}
	return s.testJob(c, emulator.Options{})
}
