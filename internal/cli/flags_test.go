package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

// meaning is what a command makes of one of its flags that has a variable.
type meaning struct {
	command, flag    string
	variables        []string // each of them alone
	env, file, given string   // its values in the three places
	read             func(s *session, c *cli.Context) (any, error)
	// What is read: without any of them, by the file, the environment and the flag.
	unset, byFile, byEnv, byFlag any
}

func (m meaning) name() string { return m.command + " --" + m.flag }

func meanings(t *testing.T) []meaning {
	t.Helper()
	level := func(s *session, c *cli.Context) (any, error) {
		log, err := s.logger(c, t.Output(), s.Lookup, false)
		for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			if err == nil && log.Enabled(t.Context(), l) {
				return l.String(), nil
			}
		}
		return nil, err
	}
	format := func(s *session, c *cli.Context) (any, error) {
		log, err := s.logger(c, t.Output(), s.Lookup, false)
		return err == nil && isJSON(log), err
	}
	noColor := func(s *session, c *cli.Context) (any, error) { return s.noColor(c), nil }
	loading := func(s *session, c *cli.Context) (any, error) {
		platform, err := config.WorkerFrom(s.Lookup)
		return loadingTime(c, platform.InitTimeout).String(), err
	}
	handler := func(s *session, c *cli.Context) (any, error) {
		spec, err := findHandler(c.String(flagHandler), nil, s.Lookup)
		return spec.fn, err
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	py := file("h.py", "def a(job): pass\ndef b(job): pass\ndef c(job): pass\n")
	logLevels, logFormats := []string{"RUNPOD_LOG_LEVEL", "RUNPOD_DEBUG_LEVEL"}, []string{"RUNPODCTL_WORKER_LOG_FORMAT"}
	var list []meaning
	for _, command := range []string{"doctor", "serve", "run", "cache"} {
		list = append(
			list,
			meaning{command, "log-level", logLevels, "WARN", "ERROR", "DEBUG", level, "INFO", "ERROR", "WARN", "DEBUG"},
			meaning{command, "log-format", logFormats, "json", "text", "auto", format, false, false, true, false},
			meaning{command, "no-color", []string{"NO_COLOR"}, "1", "false", "false", noColor, false, false, true, false},
		)
	}
	for _, command := range []string{"doctor", "serve", "run"} {
		list = append(list, meaning{command, "ready-timeout", []string{"RUNPOD_INIT_TIMEOUT"}, "7", "9s", "0", loading, "7m0s", "9s", "7s", "0s"})
	}
	for command, prefix := range map[string]string{"run": "cache-", "cache": ""} {
		mount := func(s *session, c *cli.Context) (any, error) {
			return s.setting(c, prefix+"volume", config.CacheVolume), nil
		}
		name := func(s *session, c *cli.Context) (any, error) { return s.namespace(c, prefix+"namespace"), nil }
		list = append(
			list,
			meaning{command, prefix + "volume", []string{"RUNPODCTL_WORKER_CACHE_VOLUME"}, "/env", "/file", "/flag", mount, "/runpod-volume", "/file", "/env", "/flag"},
			meaning{command, prefix + "namespace", []string{"RUNPODCTL_WORKER_CACHE_NAMESPACE"}, "env", "file", "flag", name, "", "file", "env", "flag"},
		)
	}
	dirs := func(s *session, c *cli.Context) (any, error) {
		o, err := s.readCacheFlags(c)
		return o.dirs, err
	}
	list = append(list, meaning{
		"run", "cache-dir",
		[]string{"RUNPODCTL_WORKER_CACHE_DIR"},
		"/env:/env2", "/file", "/flag", dirs,
		[]string{},
		[]string{"/file"},
		[]string{"/env", "/env2"},
		[]string{"/flag"},
	})
	for _, command := range []string{"serve", "run"} {
		list = append(list, meaning{command, "handler", []string{"RUNPOD_HANDLER"}, py + ":a", py + ":b", py + ":c", handler, nil, "b", "a", "c"})
	}
	for flag, variable := range map[string]string{"api-key": "RUNPODCTL_WORKER_API_KEY", "worker-key": "RUNPODCTL_WORKER_WORKER_KEY"} {
		key := func(s *session, c *cli.Context) (any, error) {
			return s.readKey(c, slog.New(slog.DiscardHandler), flag, flag+"-file", variable)
		}
		list = append(
			list,
			meaning{"serve", flag, []string{variable}, "of-env", "of-file", "of-flag", key, "", "of-file", "of-env", "of-flag"},
			meaning{"serve", flag + "-file", []string{variable}, "of-env", file(flag, "in-file"), file(flag+"-given", "in-given"), key, "", "in-file", "of-env", "in-given"},
		)
	}
	return append(list, meaning{
		"doctor", "gpus",
		[]string{"RUNPOD_GPU_COUNT"},
		"2", "3", "0",
		func(s *session, c *cli.Context) (any, error) {
			cfg, err := withGPUs(c, checks.ConfigFrom(s.Lookup))
			return strconv.Itoa(cfg.GPUCount.Value), err
		},
		strconv.Itoa(checks.Unset), "3", "2", "0",
	})
}

// A flag beats a variable, a variable beats the config file, the file beats the default.
func TestFlags_BeatVariablesAndThoseTheFile(t *testing.T) {
	for _, m := range meanings(t) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "%s: %q\n", m.flag, m.file), 0o600))
		for _, variable := range m.variables {
			env := map[string]string{variable: m.env}
			for name, tt := range map[string]struct {
				env  map[string]string
				args []string
				want any
			}{
				"default":          {nil, nil, m.unset},
				"file":             {nil, []string{"--config", file}, m.byFile},
				"variable":         {env, nil, m.byEnv},
				"variable, file":   {env, []string{"--config", file}, m.byEnv},
				"flag, file":       {nil, []string{"--config", file, "--" + m.flag + "=" + m.given}, m.byFlag},
				"all of them":      {env, []string{"--config", file, "--" + m.flag + "=" + m.given}, m.byFlag},
				"empty and a file": {map[string]string{variable: ""}, []string{"--config", file}, m.byFile},
			} {
				t.Run(m.name()+"/"+variable+"/"+name, func(t *testing.T) {
					t.Chdir(t.TempDir()) // where no handler is
					require.Equal(t, tt.want, m.of(t, tt.env, tt.args...))
				})
			}
		}
	}
}

// What a command line says in one way beats what the config file says in another.
func TestFlags_BeatTheFileAlsoInAnotherWay(t *testing.T) {
	keyFile := written(t, "in-given")
	for _, key := range []struct{ flag, variable string }{
		{"api-key", "RUNPODCTL_WORKER_API_KEY"},
		{"worker-key", "RUNPODCTL_WORKER_WORKER_KEY"},
	} {
		m := meaning{command: "serve", read: func(s *session, c *cli.Context) (any, error) {
			return s.readKey(c, slog.New(slog.DiscardHandler), key.flag, key.flag+"-file", key.variable)
		}}
		env := map[string]string{key.variable: "of-env"}
		asText, asFile := written(t, key.flag+": of-file\n"), written(t, key.flag+"-file: gone\n")
		require.Equal(t, "in-given", m.of(t, nil, "--config", asText, "--"+key.flag+"-file", keyFile))
		require.Equal(t, "of-flag", m.of(t, nil, "--config", asFile, "--"+key.flag, "of-flag"))
		require.Equal(t, "in-given", m.of(t, env, "--config", asText, "--"+key.flag+"-file", keyFile))
		require.Equal(t, "of-env", m.of(t, env, "--config", asFile))
	}
	m := meaning{command: "run", read: func(s *session, c *cli.Context) (any, error) {
		spec, err := findHandler(c.String(flagHandler), s.command, s.Lookup)
		return spec.String(), err
	}}
	require.Equal(t, "sleep 1", m.of(t, nil, "--config", written(t, "handler: echo\n"), "--", "sleep", "1"))
}

// of reads the flag from a command line.
func (m meaning) of(t *testing.T, env map[string]string, args ...string) (got any) {
	t.Helper()
	args, program := splitCommand(args)
	s := &session{command: program, Process: Process{Args: []string{m.command}, Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}, secrets: secretsOf(nil)}
	app := newApp(s)
	app.Command(m.command).Action = func(c *cli.Context) (err error) {
		if got, err = m.read(s, c); err != nil && m.unset == nil && len(args) == 0 && env == nil {
			got, err = nil, nil // there is no default
		}
		return err
	}
	require.NoError(t, app.RunContext(context.Background(), append([]string{app.Name, m.command}, args...)))
	return got
}

// Every flag whose help names a variable is in the table above, or the variable says something else than the flag.
func TestFlags_WithAVariableAreTried(t *testing.T) {
	other := map[string]string{
		"mode":            "says what auto means",
		"state-dir":       "is where others keep their state, too",
		"target":          "is where jobs come from",
		"offload-outputs": "says where to, not whether",
	}
	tried := map[string]bool{}
	for _, m := range meanings(t) {
		tried[m.name()] = true
		require.Equal(t, m.variables, variables(m.command, m.flag))
	}
	named := regexp.MustCompile(`\$[A-Z]`)
	for _, cmd := range newApp(withFlags).Commands {
		for _, f := range cmd.Flags {
			d := describe(f)
			if named.MatchString(d.usage) && other[d.name] == "" || variables(cmd.Name, d.name) != nil {
				require.True(t, tried[cmd.Name+" --"+d.name], "%s --%s", cmd.Name, d.name)
			}
		}
	}
}
