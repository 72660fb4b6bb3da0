package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// Set by the linker: -X runpodctl-worker/internal/cli.version=…
var (
	version = "0.0.0-dev"
	commit  = ""
)

func init() {
	cli.VersionPrinter = func(c *cli.Context) {
		fmt.Fprintln(c.App.Writer, c.App.Name, c.App.Version)
	}
}

// fullVersion is "1.2.3 (abcdef0)".
func fullVersion() string {
	return fmt.Sprintf("%s (%s)", version, revision())
}

// userAgent names this build to the platform.
func userAgent() string {
	return fmt.Sprintf("runpodctl-worker/%s (%s; %s; %s)", version, revision(), runtime.GOOS, runtime.GOARCH)
}

func revision() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 7 {
				return s.Value[:7]
			}
		}
	}
	return "unknown commit"
}
