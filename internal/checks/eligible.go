package checks

import (
	"slices"
	"strings"

	"runpodctl-worker/internal/config"
)

// localArguments make the program of an SDK run without the platform.
var localArguments = []string{"test_input", "rp_serve_api"}

// EarlyPass tells whether a worker runs the early checks before its program; where not, the reason. The arguments are
// those of the program. What is not checked early waits for start, unless it has passed before or all checks are off.
func (c Config) EarlyPass(args []string) (bool, string) {
	for _, name := range []string{config.EndpointID, config.GetJob} {
		if c.Get(name) == "" {
			return false, name + " is not set"
		}
	}
	switch {
	case c.Switches.SkipAll:
		return false, config.SkipChecks + " is set"
	case c.Switches.Defer:
		return false, config.DeferChecks + " is set"
	case truthy(c.Lookup, config.Test):
		return false, config.Test + " is set"
	case !slices.Contains([]string{"", "0"}, strings.TrimSpace(c.Get(config.RealtimePort))):
		return false, config.RealtimePort + " is set"
	case c.PassedBefore():
		return false, config.EarlyChecksDone + " is set: they have passed in this container"
	}
	for _, arg := range args {
		if name := flagName(arg); slices.Contains(localArguments, name) {
			return false, "--" + name + " is a local run"
		}
	}
	return true, ""
}

// PassedBefore tells whether a parent of this process ran the early checks, and they passed.
func (c Config) PassedBefore() bool { return truthy(c.Lookup, config.EarlyChecksDone) }

// flagName is the name in --name, --name=value and their like, spelled with underscores; empty where there is none.
func flagName(arg string) string {
	name, ok := strings.CutPrefix(arg, "-")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "-"), "=")
	return strings.ReplaceAll(name, "-", "_")
}
