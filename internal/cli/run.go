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

func runCommand(s *session) *cli.Command {
	return s.newCommand("run", "The entrypoint of a container: checks the machine, takes jobs from Runpod and runs them with your handler.", []string{
		"run -- python -u handler.py",
		"run --handler handler.py --concurrency 4",
		"run --no-shim --ready http://localhost:9000/health -- bash start.sh",
	}, runFlags, s.run)
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
