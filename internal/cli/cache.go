package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/volume"
)

// Flags of cache.
const (
	flagVolume    = "volume"
	flagNamespace = "namespace"
	flagCopiers   = "copiers"
	flagDryRun    = "dry-run"
	flagRepair    = "repair"
)

const (
	commandCache  = "cache"
	defaultVolume = "/runpod-volume" // where the platform mounts it
)

// The actions of cache.
const (
	actionHydrate = "hydrate"
	actionSync    = "sync"
	actionStatus  = "status"
	actionVerify  = "verify"
	actionPrune   = "prune"
)

func cacheCommand(s *session) *cli.Command {
	return s.newCommandOf(commandCache, "ACTION [DIR…] [flags]", "Keeps directories warm by way of a mirror on the network volume.", []word{
		{actionHydrate + " DIR…", "copy to DIR… what is missing there or older than in the mirror"},
		{actionSync + " DIR…", "copy to the mirror what has changed in DIR…"},
		{actionStatus + " [DIR…]", "show what the mirror holds, and what hydrate and sync would copy"},
		{actionVerify, "read the whole mirror and compare it with its manifest"},
		{actionPrune, "remove from the mirror what belongs to nothing any more"},
	}, []string{
		"cache hydrate ~/.cache/huggingface",
		"cache sync ~/.cache/huggingface /models",
		"cache status ~/.cache/huggingface --json",
		"cache prune --dry-run",
	}, cacheCommandFlags, s.cache)
}

func cacheCommandFlags() []flagGroup {
	return []flagGroup{
		{"The mirror", []cli.Flag{
			&cli.StringFlag{Name: flagVolume, Value: defaultVolume, Usage: "`DIR` where the network volume is mounted"},
			&cli.StringFlag{Name: flagNamespace, Usage: "`NAME` of the mirror's folder on the volume (default: $RUNPOD_ENDPOINT_ID)"},
		}},
		{"How it is done", []cli.Flag{
			&cli.BoolFlag{Name: flagDryRun, Usage: "with prune: only show what would be removed"},
			&cli.BoolFlag{Name: flagRepair, Usage: "with verify: remove what has other bytes than it should have; the next sync brings it again"},
			&cli.IntFlag{Name: flagCopiers, Usage: "`N` large files are copied at a time (default: as many as suit this machine)"},
			&cli.DurationFlag{Name: flagTimeout, Usage: "how long it may take; 0 = as long as it gets on"},
			&cli.BoolFlag{Name: flagJSON, Usage: "one JSON document on standard output"},
		}},
		{"General", generalFlags()},
	}
}

func (s *session) cache(c *cli.Context) error {
	action, dirs, err := s.cacheArguments(c)
	if err != nil {
		return err
	}
	s.relaxGC(workerMemory)
	options := volume.Options{Volume: s.setting(c, flagVolume, config.CacheVolume), Namespace: s.namespace(c, flagNamespace), Dirs: dirs, Copiers: c.Int(flagCopiers)}
	result := &cacheResult{action: action, mirror: filepath.Join(options.Volume, ".cache", options.Namespace), dirs: len(dirs), dryRun: c.Bool(flagDryRun), repair: c.Bool(flagRepair)}
	if options.Namespace == "" {
		if _, err := os.Stat(options.Volume); errors.Is(err, fs.ErrNotExist) { // a start script need not ask first
			result.lines = []string{options.Volume + ": " + volume.ErrNoVolume.Error()}
			return s.printCacheResult(c, result)
		}
		return usagef("the mirror has no name: give --%s or set %s", flagNamespace, config.EndpointID)
	}
	view, err := s.newCacheView(c, action)
	if err != nil {
		return err
	}
	defer view.close()
	options.Progress, options.Log = view.progress, volumeLog(view.log)
	cache, err := volume.New(options)
	if err != nil {
		return usagef("%w", err)
	}
	signalled, stop := s.untilSignal()
	defer stop()
	ctx := signalled
	if limit := c.Duration(flagTimeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s (--%s)", limit, flagTimeout))
		defer cancel()
	}
	err = result.act(ctx, cache)
	view.close()
	switch {
	case ended(signalled):
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	case ended(ctx):
		return fmt.Errorf("%s: %w", action, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%s: %w", action, err)
	case result.warning != nil:
		view.log.Warn("VolumeCache: " + result.warning.Error())
	}
	if action == actionSync && result.available && !slices.ContainsFunc(dirs, exists) {
		view.log.Warn("VolumeCache: none of the directories is there, so nothing is done")
	}
	return s.printCacheResult(c, result)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// cacheArguments are what to do, and with which directories: those after "--" too, whatever they are called.
func (s *session) cacheArguments(c *cli.Context) (action string, dirs []string, err error) {
	actions := []string{actionHydrate, actionSync, actionStatus, actionVerify, actionPrune}
	action, dirs = c.Args().First(), slices.Concat(c.Args().Tail(), s.command)
	switch {
	case !slices.Contains(actions, action):
		return "", nil, usagef("cache %s: want hydrate, sync, status, verify or prune", cmp.Or(action, "without an action"))
	case len(dirs) == 0 && (action == actionHydrate || action == actionSync):
		return "", nil, usagef("cache %s: name the directories", action)
	case len(dirs) > 0 && (action == actionVerify || action == actionPrune):
		return "", nil, usagef("cache %s: it is for the whole mirror; %q is too much", action, dirs[0])
	case c.Bool(flagDryRun) && action != actionPrune:
		return "", nil, usagef("--%s goes with %s, not with %s", flagDryRun, actionPrune, action)
	case c.Bool(flagRepair) && action != actionVerify:
		return "", nil, usagef("--%s goes with %s, not with %s", flagRepair, actionVerify, action)
	case c.Int(flagCopiers) < 0:
		return "", nil, usagef("--%s %d: want 0 or more", flagCopiers, c.Int(flagCopiers))
	case c.Duration(flagTimeout) < 0:
		return "", nil, usagef("--%s %s: want no negative time", flagTimeout, c.Duration(flagTimeout))
	}
	return action, dirs, nil
}

// setting is what a flag says, or else its variable.
func (s *session) setting(c *cli.Context, flag, variable string) string {
	if value, _ := s.Lookup(variable); value != "" && !c.IsSet(flag) {
		return value
	}
	return c.String(flag)
}

// namespace is the one that is asked for, or else that of the endpoint.
func (s *session) namespace(c *cli.Context, flag string) string {
	endpoint, _ := s.Lookup(config.EndpointID)
	return cmp.Or(s.setting(c, flag, config.CacheNamespace), endpoint)
}
