package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		&cli.StringFlag{Name: flagLogFormat, Value: "auto", Usage: "`FORMAT`: auto, json or text"},
		&cli.BoolFlag{Name: flagNoColor, Usage: "no colour and no spinner on a terminal (also: $NO_COLOR)"},
	}
}

func generalFlags() []cli.Flag {
	return append(commonFlags(), &cli.StringFlag{Name: flagConfig, Usage: "YAML `FILE` with this command's flags as keys"})
}

// before fills in the environment and the config file, and refuses stray arguments, which would be ignored otherwise.
func (s *session) before(c *cli.Context) error {
	if c.Args().Present() && c.Command.Name != cacheName {
		arg := c.Args().First()
		if strings.Contains(arg, ".py") {
			return usagef("unexpected argument %q; did you mean --%s %s?", arg, flagHandler, arg)
		}
		return usagef("unexpected argument %q; a program of your own goes after --", arg)
	}
	if err := applyVariables(c, s.Lookup); err != nil {
		return err
	}
	path := c.String(flagConfig)
	if path == "" {
		return nil
	}
	return applyFile(c, path)
}

// variables are those that stand for a flag and nothing else.
var variables = []struct{ flag, variable string }{
	{flagCacheDir, config.CacheDir},
	{flagCacheVolume, config.CacheVolume},
	{flagVolume, config.CacheVolume},
	{flagCacheNamespace, config.CacheNamespace},
	{flagNamespace, config.CacheNamespace},
}

// applyVariables gives each flag that the command line left alone its value from the environment. Of a flag that may be
// repeated it holds several, as PATH does.
func applyVariables(c *cli.Context, lookup config.Lookup) error {
	for _, v := range variables {
		value, _ := lookup(v.variable)
		at := slices.IndexFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == v.flag })
		if value == "" || at < 0 || c.IsSet(v.flag) {
			continue
		}
		values := []string{value}
		if _, repeatable := c.Command.Flags[at].(*cli.StringSliceFlag); repeatable {
			values = filepath.SplitList(value)
		}
		for _, value := range values {
			if err := c.Set(v.flag, value); err != nil {
				return usagef("%s=%q: want %s", v.variable, value, wanted(c.Command.Flags[at]))
			}
		}
	}
	return nil
}

// applyFile gives each flag that the command line left alone its value from a YAML file, whose keys are
// the names of the command's flags.
func applyFile(c *cli.Context, path string) error {
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
	for key, value := range values {
		name, ok := spelling[dashed(key)]
		if !ok || name == flagConfig {
			return usagef("--%s %s: unknown key %q", flagConfig, path, key)
		}
		if c.IsSet(name) {
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

// bare takes the operation off a file error: "no such file or directory", with the path kept by the caller's text.
func bare(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", pathErr.Path, pathErr.Err)
	}
	return err
}
