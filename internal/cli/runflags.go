package cli

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/ready"
)

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

// What --on-kill may say.
const (
	onKillRelease = "release"
	onKillFail    = "fail"
)

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

// readRunFlags checks the flags of run, those that serve has too included.
func (s *session) readRunFlags(c *cli.Context, initTimeout time.Duration) (workerOptions, error) {
	o, err := s.readWorkerFlags(c, initTimeout)
	if err != nil {
		return o, err
	}
	o.noShim, o.hideKey, o.pingEarly, o.batch = c.Bool(flagNoShim), c.Bool(flagHideKey), c.Bool(flagPingEarly), c.Bool(flagBatch)
	if o.statePlaces, err = s.statePlaces(c.String(flagStateDir)); err != nil {
		return o, err
	}
	if o.cache, err = s.readCacheFlags(c); err != nil {
		return o, err
	}
	if o.jobTimeout = c.Duration(flagJobTimeout); o.jobTimeout < 0 {
		return o, usagef("--%s %s: want no negative time", flagJobTimeout, o.jobTimeout)
	}
	if o.maxCrashes = c.Int(flagMaxCrashes); o.maxCrashes < 1 {
		return o, usagef("--%s %d: want 1 or more", flagMaxCrashes, o.maxCrashes)
	}
	switch word := c.String(flagOnKill); word {
	case onKillRelease, onKillFail:
		o.failOnKill = word == onKillFail
	default:
		return o, usagef("--%s %q: want %s or %s", flagOnKill, word, onKillRelease, onKillFail)
	}
	for _, spec := range c.StringSlice(flagReadyProbe) {
		probe, err := ready.Parse(spec)
		if err != nil {
			return o, usagef("--%s %w", flagReadyProbe, err)
		}
		o.probes = append(o.probes, probe)
	}
	return o, nil
}
