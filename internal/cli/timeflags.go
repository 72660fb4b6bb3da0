package cli

import (
	"time"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/emulator"
)

// times are the local Runpod's hold times and time limits, all settable so that a test need not wait for hours.
var times = []struct {
	flag  string
	value time.Duration
	usage string
	field func(*emulator.Options) *time.Duration
}{
	{"take-hold", 5 * time.Second, "how long job-take waits for a job", func(o *emulator.Options) *time.Duration { return &o.TakeHold }},
	{"stop-hold", 25 * time.Second, "how long job-stop waits for news", func(o *emulator.Options) *time.Duration { return &o.StopHold }},
	{"stream-hold", 9500 * time.Millisecond, "how long stream waits for an item, without ?wait", func(o *emulator.Options) *time.Duration { return &o.StreamHold }},
	{"sync-hold", 90 * time.Second, "how long runsync waits for the end of the job, without ?wait", func(o *emulator.Options) *time.Duration { return &o.SyncHold }},
	{"min-wait", time.Second, "shortest ?wait; a shorter one is raised to it", func(o *emulator.Options) *time.Duration { return &o.MinWait }},
	{"max-wait", 5 * time.Minute, "longest ?wait; a longer one is cut to it", func(o *emulator.Options) *time.Duration { return &o.MaxWait }},
	{"openai-hold", 5 * time.Minute, "how long an OpenAI call waits for the next word from its job", func(o *emulator.Options) *time.Duration { return &o.OpenAIHold }},
	{"max-hold", 0, "upper bound of all these and of ?wait; 0 = none", func(o *emulator.Options) *time.Duration { return &o.MaxHold }},
	{"lease", 40 * time.Second, "silence about a job after which it goes to another worker", func(o *emulator.Options) *time.Duration { return &o.Lease }},
	{"execution-timeout", 10 * time.Minute, "how long a job may run unless its policy says otherwise", func(o *emulator.Options) *time.Duration { return &o.Execution }},
	{"ttl", 24 * time.Hour, "how long a job exists unless its policy says otherwise", func(o *emulator.Options) *time.Duration { return &o.TTL }},
	{"min-execution-timeout", 5 * time.Second, "shortest executionTimeout that a policy may ask for", func(o *emulator.Options) *time.Duration { return &o.MinExecution }},
	{"min-ttl", 10 * time.Second, "shortest ttl that a policy may ask for", func(o *emulator.Options) *time.Duration { return &o.MinTTL }},
	{"max-policy", 7 * 24 * time.Hour, "longest executionTimeout and ttl that a policy may ask for", func(o *emulator.Options) *time.Duration { return &o.MaxPolicy }},
	{"retention", 30 * time.Minute, "how long the result of run is kept", func(o *emulator.Options) *time.Duration { return &o.Retention }},
	{"sync-retention", time.Minute, "how long the result of runsync is kept", func(o *emulator.Options) *time.Duration { return &o.SyncRetention }},
	{"sweep-interval", time.Second, "how often the time limits are looked at", func(o *emulator.Options) *time.Duration { return &o.SweepEvery }},
}

func timeFlags() []cli.Flag {
	flags := make([]cli.Flag, len(times))
	for i, t := range times {
		flags[i] = &cli.DurationFlag{Name: t.flag, Value: t.value, Usage: t.usage}
	}
	return flags
}

// readRules reads every flag that says what the local Runpod does with jobs.
func readRules(c *cli.Context) (emulator.Options, error) {
	var o emulator.Options
	for _, t := range times {
		d := c.Duration(t.flag)
		if d < 0 || d == 0 && t.value != 0 {
			return o, usagef("--%s %s: want a time above zero", t.flag, d)
		}
		*t.field(&o) = d
	}
	switch n := c.Int(flagMaxRetries); {
	case n < 0:
		return o, usagef("--%s %d: want 0 or more", flagMaxRetries, n)
	case n == 0:
		o.MaxRetries = -1 // the emulator's word for none
	default:
		o.MaxRetries = n
	}
	return o, readLimitFlags(c, &o)
}
