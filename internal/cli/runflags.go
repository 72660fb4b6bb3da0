package cli

import (
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/ready"
)

// What --on-kill may say.
const (
	onKillRelease = "release"
	onKillFail    = "fail"
)

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
