package cli

import (
	"errors"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/worker"
)

// localJobFile is what the SDK runs where there is no platform to take jobs from.
const localJobFile = "test_input.json"

func runCommand(s *session) *cli.Command {
	return newCommand("run", "The entrypoint of a container: takes jobs from Runpod and runs them with your handler.", []string{
		"run -- python -u handler.py",
		"run --handler handler.py --concurrency 4",
	}, []flagGroup{
		{"Your handler", handlerFlags()},
		{"One job instead of the platform's", jobFlags()},
		{"Stopping", stopFlags()},
		{"General", generalFlags()},
	}, s.run)
}

func (s *session) run(c *cli.Context) error {
	if c.IsSet(flagTestInput) {
		return s.testJob(c, emulator.Options{})
	}
	platform, err := config.WorkerFrom(s.Lookup)
	if err != nil {
		return usagef("%w", err)
	}
	if platform.URLs.GetJob == "" {
		return s.runWithoutPlatform(c)
	}
	if platform.URLs.PostOutput == "" {
		return usagef("%s is set but %s is not: results would have nowhere to go", config.GetJob, config.PostOutput)
	}
	log, err := newLogger(s.Stderr, s.Lookup, c.String(flagLogLevel), c.String(flagLogFormat), s.lively(c))
	if err != nil {
		return err
	}
	options, err := s.readWorkerFlags(c, platform.InitTimeout)
	if err != nil {
		return err
	}
	life, endLife := watchSignals(s.Process, log, drainsFirst)
	defer endLife()
	host := &workerHost{
		options: options, platform: platform, env: s.Environ(),
		stdout: s.Stdout, stderr: s.Stderr, log: log,
		fit: &fitness{lookup: s.Lookup, env: s.Environ(), args: options.spec.command, log: log},
	}
	if err := host.fit.early(life.fetch); err != nil {
		return host.unfit(err, nil)
	}
	reason, err := host.once(life)
	if reason == worker.Refreshed {
		log.Info("A job asked for a fresh worker: this one ends.")
	}
	return workerExit(err)
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
