package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/emulator"
)

// Flags of serve that say what the local Runpod permits.
const (
	flagPrivateHooks = "allow-private-webhooks"
	flagHookGaps     = "webhook-gaps"
	flagRateLimits   = "rate-limits"
	flagRetain       = "retain-bytes"
	flagDisputed     = "disputed"
)

// sizes are the local Runpod's limits of bytes.
var sizes = []struct {
	flag, value, usage string
	field              func(*emulator.Options) *int64
}{
	{"max-run-body", "10MiB", "largest body of run and of the calls for batches", func(o *emulator.Options) *int64 { return &o.MaxRun }},
	{"max-runsync-body", "20MB", "largest body of runsync and the OpenAI route", func(o *emulator.Options) *int64 { return &o.MaxRunSync }},
	{flagMaxResult, "20MB", "largest result that a worker may post", func(o *emulator.Options) *int64 { return &o.MaxResult }},
	{flagMaxChunk, "1MiB", "largest item of a stream that a worker may post", func(o *emulator.Options) *int64 { return &o.MaxChunk }},
	{flagRetain, "256MiB", "results that an endpoint keeps; the oldest make place before their time; 0 = no bound", func(o *emulator.Options) *int64 { return &o.RetainBytes }},
}

func limitFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: flagRateLimits, Value: "off", Usage: "`MODE`: off, or hosted: answer 429 where the platform would"},
		&cli.StringSliceFlag{Name: flagDisputed, Usage: "take the other side where people disagree about the platform, as `NAME=VALUE` (see docs/emulator.md); may be repeated"},
		&cli.BoolFlag{Name: flagPrivateHooks, Usage: "webhooks may go to this machine and private networks also when --" + flagHost + " is not loopback"},
		&cli.StringFlag{Name: flagHookGaps, Value: "5s,15s", Usage: "`TIMES` between the attempts at a webhook; empty = one attempt"},
		faultsFlag(),
	}
	for _, size := range sizes {
		flags = append(flags, &cli.StringFlag{Name: size.flag, Value: size.value, Usage: "`SIZE` of the " + size.usage})
	}
	return flags
}

// readLimitFlags sets what the flags above say.
func readLimitFlags(c *cli.Context, o *emulator.Options) error {
	var err error
	switch limits := c.String(flagRateLimits); limits {
	case "off", "hosted":
		o.RateLimits = limits == "hosted"
	default:
		return usagef("--%s %s: want off or hosted", flagRateLimits, limits)
	}
	for _, text := range c.StringSlice(flagDisputed) {
		if err = o.Disputed.Set(text); err != nil {
			return usagef("--%s: %w", flagDisputed, err)
		}
	}
	for _, size := range sizes {
		n, err := parseSize(c.String(size.flag))
		if err != nil || n == 0 && size.flag != flagRetain {
			return usagef("--%s %s: want a size such as %s", size.flag, c.String(size.flag), size.value)
		}
		*size.field(o) = n
	}
	if o.RetainBytes == 0 {
		o.RetainBytes = -1 // the emulator's word for no bound
	}
	o.Webhooks.AllowPrivate = c.Bool(flagPrivateHooks) || isLoopback(c.String(flagHost))
	if o.Webhooks.Gaps, err = parseGaps(c.String(flagHookGaps)); err != nil {
		return usagef("--%s: %w", flagHookGaps, err)
	}
	o.Faults, err = readFaults(c.String(flagFaults))
	return err
}

// parseSize reads bytes: 1000, 20MB (millions) or 10MiB (1024 by 1024).
func parseSize(text string) (int64, error) {
	units := []struct {
		name  string
		bytes int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}
	for _, unit := range units {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit.bytes {
			return 0, fmt.Errorf("%q is not a size", text)
		}
		return n * unit.bytes, nil
	}
	return 0, fmt.Errorf("%q is not a size", text) // not reached: every text ends in ""
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
