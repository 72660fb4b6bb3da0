package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/config"
)

// Flags that every command has, and the file that holds others.
const (
	flagLogLevel  = "log-level"
	flagLogFormat = "log-format"
	flagNoColor   = "no-color"
	flagConfig    = "config"
)

func commonFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagLogLevel, Aliases: []string{"rp_log_level"}, Usage: "`LEVEL`: ERROR, WARN, INFO or DEBUG (default: $RUNPOD_LOG_LEVEL, else INFO)"},
		&cli.StringFlag{Name: flagLogFormat, Value: "auto", Usage: "`FORMAT`: auto, json, text (also: $RUNPODCTL_WORKER_LOG_FORMAT)"},
		&cli.BoolFlag{Name: flagNoColor, Usage: "no colour and no spinner on a terminal (also: $NO_COLOR)"},
	}
}

func generalFlags() []cli.Flag {
	return append(commonFlags(), &cli.StringFlag{Name: flagConfig, Usage: "YAML `FILE` with this command's flags as keys"})
}

// variables are those that say what a flag of a command says where it is not given.
func variables(command, flag string) []string {
	switch flag {
	case flagLogLevel:
		return []string{config.LogLevel, config.DebugLevel}
	case flagLogFormat:
		return []string{config.LogFormat}
	case flagNoColor:
		return []string{config.NoColor}
	case flagHandler:
		if command == commandDoctor { // which starts no handler unless it is told to
			return nil
		}
		return []string{config.Handler}
	case flagReady:
		return []string{config.InitTimeout}
	case flagGPUs:
		return []string{config.GPUCount}
	case flagKey, flagKeyFile:
		return []string{config.ServeKey}
	case flagWorkerKey, flagWorkerKeyFile:
		return []string{config.ServeWorkerKey}
	case flagCacheDir:
		return []string{config.CacheDir}
	case flagVolume, flagCacheVolume:
		return []string{config.CacheVolume}
	case flagNamespace, flagCacheNamespace:
		return []string{config.CacheNamespace}
	}
	return nil
}

// beforeCommand fills in the config file and refuses stray arguments, which would be ignored otherwise.
func (s *session) beforeCommand(c *cli.Context) error {
	if c.Args().Present() && c.Command.Name != commandCache {
		arg := c.Args().First()
		if strings.Contains(arg, ".py") {
			return usagef("unexpected argument %q; did you mean --%s %s?", arg, flagHandler, arg)
		}
		return usagef("unexpected argument %q; a program of your own goes after --", arg)
	}
	path := c.String(flagConfig)
	if path == "" {
		return nil
	}
	return s.applyFile(c, path)
}

// applyFile gives each flag that the command line and the environment left alone its value from a YAML file, whose
// keys are the names of the command's flags.
func (s *session) applyFile(c *cli.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return usagef("--%s: %w", flagConfig, bare(err))
	}
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		return usagef("--%s %s: %w", flagConfig, path, err)
	}
	spelling, flags := map[string]string{}, map[string]cli.Flag{}
	for _, f := range c.Command.Flags {
		for _, name := range f.Names() {
			spelling[dashed(name)] = f.Names()[0]
		}
		flags[f.Names()[0]] = f
	}
	given := map[string]bool{}
	for name := range flags {
		given[name] = s.given(c, name)
	}
	for key, value := range values {
		name, ok := spelling[dashed(key)]
		if !ok || name == flagConfig {
			return usagef("--%s %s: unknown key %q", flagConfig, path, key)
		}
		if given[name] {
			continue
		}
		items, isList := value.([]any)
		if !isList {
			items = []any{value}
		} else if _, repeatable := flags[name].(*cli.StringSliceFlag); !repeatable {
			return usagef("--%s %s: %s: want one value, not a list", flagConfig, path, key)
		}
		for _, item := range items {
			if err := c.Set(name, fmt.Sprint(item)); err != nil {
				return usagef("--%s %s: %s: %v: want %s", flagConfig, path, key, item, wanted(flags[name]))
			}
		}
	}
	return nil
}

// twins are flags that say the same thing in two ways.
var twins = map[string]string{
	flagKey: flagKeyFile, flagKeyFile: flagKey,
	flagWorkerKey: flagWorkerKeyFile, flagWorkerKeyFile: flagWorkerKey,
}

// given tells whether the command line or the environment says what a flag would, be it in another way.
func (s *session) given(c *cli.Context, flag string) bool {
	switch {
	case flag == flagHandler && len(s.command) > 0, c.IsSet(flag):
		return true
	case twins[flag] != "" && c.IsSet(twins[flag]):
		return true
	}
	return s.inEnvironment(c.Command.Name, flag)
}

func (s *session) inEnvironment(command, flag string) bool {
	return slices.ContainsFunc(variables(command, flag), func(variable string) bool {
		value, ok := s.Lookup(variable)
		return ok && value != ""
	})
}

// refuseNegative is about flags that are times.
func refuseNegative(c *cli.Context, names ...string) error {
	for _, name := range names {
		if d := c.Duration(name); d < 0 {
			return usagef("--%s %s: want no negative time", name, d)
		}
	}
	return nil
}

// bare takes the operation off a file error: "no such file or directory", with the path kept by the caller's text.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", pathErr.Path, pathErr.Err)
	}
	return err
}
