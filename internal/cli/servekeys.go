package cli

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/emulator"
)

// Flags of serve that say who may call.
const (
	flagKey           = "api-key"
	flagKeyFile       = "api-key-file"
	flagWorkerKey     = "worker-key"
	flagWorkerKeyFile = "worker-key-file"
	flagInsecure      = "insecure"
	flagAllowHost     = "allow-host"
	flagCORS          = "cors"
)

func accessFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagKey, Usage: "the `KEY` that clients and workers must send (better: $" + config.ServeKey + " or --" + flagKeyFile + ")"},
		&cli.StringFlag{Name: flagKeyFile, Usage: "`FILE` that holds the key"},
		&cli.StringFlag{Name: flagWorkerKey, Usage: "a `KEY` of their own for workers (better: $" + config.ServeWorkerKey + " or --" + flagWorkerKeyFile + ")"},
		&cli.StringFlag{Name: flagWorkerKeyFile, Usage: "`FILE` that holds the workers' key"},
		&cli.BoolFlag{Name: flagInsecure, Usage: "listen beyond this machine without a key"},
		&cli.StringSliceFlag{Name: flagAllowHost, Usage: "on loopback: another `NAME` that URLs may use for this machine, * = any; may be repeated"},
		&cli.StringSliceFlag{Name: flagCORS, Usage: "`ORIGIN` whose web pages may call, such as https://app.example.com, * = any; may be repeated"},
	}
}

// readAccessFlags finds the keys and the hosts and pages to let in.
func (s *session) readAccessFlags(c *cli.Context, log *slog.Logger, o *emulator.Options) error {
	var err error
	if o.APIKey, err = s.readKey(c, log, flagKey, flagKeyFile, config.ServeKey); err != nil {
		return err
	}
	if o.WorkerKey, err = s.readKey(c, log, flagWorkerKey, flagWorkerKeyFile, config.ServeWorkerKey); err != nil {
		return err
	}
	if o.WorkerKey == "" {
		o.WorkerKey = o.APIKey
	}
	for _, origin := range c.StringSlice(flagCORS) {
		if origin, err = parseOrigin(origin); err != nil {
			return usagef("--%s: %w", flagCORS, err)
		}
		o.Origins = append(o.Origins, origin)
	}
	host := c.String(flagHost)
	if isLoopback(host) {
		o.Hosts = append([]string{"localhost"}, lower(c.StringSlice(flagAllowHost))...)
		return nil
	}
	switch {
	case o.APIKey != "":
		log.Warn("listening beyond this machine on " + host)
	case c.Bool(flagInsecure):
		log.Warn("listening beyond this machine on " + host + " without a key: whoever reaches it can run jobs here")
	default:
		return usagef("--%s %s would let anybody on the network run jobs: set %s, or --%s if that is what you want", flagHost, host, config.ServeKey, flagInsecure)
	}
	return nil
}

// readKey finds a key: flag, file, environment.
func (s *session) readKey(c *cli.Context, log *slog.Logger, flag, fileFlag, variable string) (string, error) {
	if key := c.String(flag); key != "" {
		s.secrets.Add(key)
		log.Warn("--" + flag + " shows the key to every process on this machine; " + variable + " or --" + fileFlag + " does not")
		return key, nil
	}
	if path := c.String(fileFlag); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", usagef("--%s: %w", fileFlag, bare(err))
		}
		key := strings.TrimSpace(string(text))
		if key == "" {
			return "", usagef("--%s %s: is empty", fileFlag, path)
		}
		s.secrets.Add(key)
		return key, nil
	}
	key, _ := s.Lookup(variable)
	return key, nil
}

// parseOrigin reads an origin as browsers send it: scheme, host and port.
func parseOrigin(text string) (string, error) {
	if text == "*" {
		return text, nil
	}
	origin := strings.ToLower(strings.TrimSuffix(text, "/"))
	u, err := url.Parse(origin)
	if err != nil || u.Hostname() == "" || origin != u.Scheme+"://"+u.Host || strings.Contains(u.Host, "*") {
		return "", fmt.Errorf("%q is not an origin such as https://app.example.com", text)
	}
	if port := u.Port(); port == "" || port == usualPorts[u.Scheme] { // browsers leave it out
		origin = strings.TrimSuffix(origin, ":"+port)
	}
	return origin, nil
}

var usualPorts = map[string]string{"http": "80", "https": "443"}

func lower(names []string) []string {
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return names
}
