package checks

import "runpodctl-worker/internal/config"

// Switches turn checks off or put them later.
type Switches struct {
	SkipAll    bool // RUNPOD_SKIP_FITNESS_CHECKS
	Defer      bool // RUNPOD_DEFER_FITNESS_CHECKS: early ones wait for start
	SkipSystem bool // RUNPOD_SKIP_AUTO_SYSTEM_CHECKS
	SkipGPU    bool // RUNPOD_SKIP_GPU_CHECK
}

func switchesFrom(lookup config.Lookup) Switches {
	return Switches{
		SkipAll:    truthy(lookup, config.SkipChecks),
		Defer:      truthy(lookup, config.DeferChecks),
		SkipSystem: truthy(lookup, config.SkipSystem),
		SkipGPU:    truthy(lookup, config.SkipGPU),
	}
}

// Apply excludes the steps that are switched off. The user's own checks obey only the switch for all.
func (s Switches) Apply(steps []Step) []Step {
	return exclude(steps, func(c Check) string {
		off := c.offSwitch()
		switch {
		case s.SkipAll:
			return config.SkipChecks + " is set"
		case s.SkipSystem && off == config.SkipSystem, s.SkipGPU && off == config.SkipGPU:
			return off + " is set"
		}
		return ""
	})
}

// offSwitch is the variable that turns the check off, beside the one for all.
func (c Check) offSwitch() string {
	if c.Builtin && c.Switch == "" {
		return config.SkipSystem
	}
	return c.Switch
}
