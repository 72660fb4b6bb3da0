// Package gpu holds the checks of the GPUs. It loads no driver library itself: helper programs do, one for each GPU
// that is touched, and a driver that hangs or crashes takes only its helper along. Nothing of CUDA is left in this
// process, or inherited by the handler.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/proc"
)

// Options say what the checks of a Driver go by.
type Options struct {
	Config checks.Config
	Locate Locator  // of the helpers; nil: Locate
	Env    []string // of the helpers and nvidia-smi; nil: that of this process
	Root   string   // below which devices and libraries are looked for; empty: as they are

	Deferred    bool        // early checks run at start, when the model may be loaded: a GPU that is full then only warns
	EarlyPassed func() bool // the memory test passed early, so a GPU that is full at start holds the model; nil: it did not
}

// Driver makes the checks of the GPUs. They share what they find out: see pass.
type Driver struct {
	options Options
	config  checks.Config
	helpers helpers
	environ []string
	xids    xidPolicy
	xidErr  error
	now     func() time.Time

	mu      sync.Mutex
	current *pass
}

// New makes a driver. It asks nothing yet.
func New(o Options) *Driver {
	d := &Driver{options: o, config: o.Config, environ: o.Env, now: time.Now}
	if d.environ == nil {
		d.environ = os.Environ()
	}
	locate := o.Locate
	if locate == nil {
		locate = Locate(o.Config.Lookup)
	}
	d.helpers = helpers{
		locate: locate, between: startTime, kill: (*proc.Process).Kill,
		limit: func(s wire.Step) time.Duration {
			if known, ok := steps[s]; ok {
				return known.limit
			}
			return briefTime
		},
	}
	d.xids, d.xidErr = newXIDPolicy(o.Config.Get(config.XIDFail), o.Config.Get(config.XIDIgnore))
	return d
}

// Info is a GPU, or a slice of one, for who wants to know how much memory there is.
type Info struct {
	Index           int // of the GPU that it is or belongs to
	Name            string
	TotalGB, FreeGB float64 // FreeGB is below zero where it is not known
}

// GPUs lists what there is.
func (d *Driver) GPUs(ctx context.Context) ([]Info, error) {
	seen, reason := d.look()
	if reason != "" {
		return nil, errors.New(reason)
	}
	ctx, p, leave := d.enter(ctx, checks.Start, "")
	defer leave()
	s := d.inquire(ctx, p, seen)
	if reason := s.absent(); reason != "" {
		return nil, errors.New(reason)
	}
	units := s.units(d.chosen())
	if len(units) == 0 {
		return nil, errors.New(s.unusable()[0].String())
	}
	infos := make([]Info, len(units))
	for i, u := range units {
		infos[i] = Info{Index: u.index, Name: u.model, TotalGB: gigabytes(u.total), FreeGB: -1}
		if u.known {
			infos[i].FreeGB = gigabytes(u.free)
		}
	}
	return infos, nil
}

// Absent says why there is no GPU to check, and none is asked for; it is empty where the checks have something to do.
func (d *Driver) Absent() string {
	if d.config.GPUCount.Value > 0 || d.config.GPUCount.Err != nil {
		return ""
	}
	_, reason := d.look()
	return reason
}

// chosen tells whether somebody chose the GPUs that CUDA may show.
func (d *Driver) chosen() bool {
	_, set := variable(d.environ, visibleDevices)
	return set
}

// look looks from outside, and says why there is no GPU where nothing hints at one.
func (d *Driver) look() (presence, string) {
	if runtime.GOOS != "linux" {
		return presence{}, "GPUs are supported on Linux only"
	}
	seen := look(d.options.Root, d.environ)
	if !seen.proof() && !seen.hint() {
		return seen, "no GPU: no NVIDIA device, kernel driver or driver library is here"
	}
	return seen, ""
}

// killSlack is what a check may take beyond the budget, to end what hangs and to tell it.
const killSlack = 10 * time.Second

// check makes a check whose verdict is spoken over the survey of its pass.
func (d *Driver) check(c checks.Check, judge func(context.Context, *pass, *survey) checks.Result) checks.Check {
	c.Lane, c.Builtin = checks.LaneGPU, true
	c.Limit = d.config.GPUTimeout.Value + killSlack
	c.Run = func(ctx context.Context) checks.Result {
		if err := d.config.GPUTimeout.Err; err != nil {
			return checks.Misread(err)
		}
		seen, reason := d.look()
		if reason != "" {
			return d.none(c, reason)
		}
		within, p, leave := d.enter(ctx, c.Phase, c.ID)
		defer leave()
		s := d.inquire(within, p, seen)
		if reason := s.absent(); reason != "" {
			return d.none(c, reason)
		}
		res := judge(within, p, s)
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return checks.Skipped("not finished: interrupted")
		}
		if names := removed(d.environ); len(names) > 0 {
			res.Facts = append(res.Facts, checks.Fact{
				Name: "variables_left_out", Value: names, Text: "tested without " + strings.Join(names, ", "),
			})
		}
		return res
	}
	return c
}

// none is the result where there is no GPU. Where there should be some, the checks of what is there say so; the others
// have nothing to look at.
func (d *Driver) none(c checks.Check, reason string) checks.Result {
	want := d.config.GPUCount
	if want.Err != nil && c.ID == healthID {
		return checks.Misread(want.Err)
	}
	if want.Value <= 0 || c.Phase == checks.Start || c.ID == versionID {
		return checks.Skipped("%s", reason)
	}
	return checks.Result{
		Status: checks.Fail, Summary: fmt.Sprintf("%s; %d expected (%s)", reason, want.Value, want.Origin),
		Remedy:    "Start the container with GPUs (--gpus all, or a GPU endpoint), or take " + want.Origin + " back.",
		Threshold: expected(want),
	}
}

// expected is the number of GPUs that somebody asked for.
func expected(want checks.Knob[int]) *checks.Threshold {
	return &checks.Threshold{Value: want.Value, Text: count(want.Value, "GPU", "GPUs"), Origin: want.Origin}
}
