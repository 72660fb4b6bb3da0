package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/emulator"
)

// Flags of serve that say what the local Runpod permits.
const (
	flagPrivateHooks = "allow-private-webhooks"
	flagHookGaps     = "webhook-gaps"
)

func limitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: flagPrivateHooks, Usage: "webhooks may go to this machine and private networks also when --" + flagHost + " is not loopback"},
		&cli.StringFlag{Name: flagHookGaps, Value: "5s,15s", Usage: "pauses between the attempts at a webhook; empty = one attempt"},
		faultsFlag(),
	}
}

// readLimitFlags sets what the flags above say.
func readLimitFlags(c *cli.Context, o *emulator.Options) error {
	var err error
	o.Webhooks.AllowPrivate = c.Bool(flagPrivateHooks) || isLoopback(c.String(flagHost))
	if o.Webhooks.Gaps, err = parseGaps(c.String(flagHookGaps)); err != nil {
		return usagef("--%s: %w", flagHookGaps, err)
	}
	o.Faults, err = readFaults(c.String(flagFaults))
	return err
}

func parseGaps(text string) ([]time.Duration, error) {
	gaps := []time.Duration{} // an empty list is none, a nil one the default
	if text == "" {
		return gaps, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		gap, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || gap < 0 {
			return nil, fmt.Errorf("%q is not a time such as 5s", part)
		}
		gaps = append(gaps, gap)
	}
	return gaps, nil
}
