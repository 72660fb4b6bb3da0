package gpu

import (
	"context"
	"fmt"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

const healthID = "gpu_health"

// Health is the check of what the driver's management side knows of each GPU: errors, damage, heat, links, and whether
// all GPUs are there.
func (d *Driver) Health() checks.Check {
	return d.check(checks.Check{
		ID: healthID, Name: healthID, Title: "GPU health", Phase: checks.Early,
	}, func(_ context.Context, _ *pass, s *survey) checks.Result {
		for _, err := range []error{d.config.GPUCount.Err, d.xidErr} {
			if err != nil {
				return checks.Misread(err)
			}
		}
		m := s.management()
		found := sourceFindings(s)
		for _, line := range m.lost {
			found = append(found, failed(unitName(line.GPU), line))
		}
		for _, h := range m.health {
			found = append(found, examine(h)...)
		}
		found = append(found, d.missing(s)...)
		found = append(found, d.xids.judgeAll(s.events)...)
		good := checks.Result{
			Summary: count(m.count, "GPU is", "GPUs are") + " well, says " + m.source,
			Facts:   healthFacts(s),
		}
		if want := d.config.GPUCount; want.Value > 0 {
			good.Threshold = expected(want)
		}
		return conclude(good, found, max(d.config.GPUMaxErrors.Value, 1))
	})
}

// sourceFindings say what is wrong with those who were asked.
func sourceFindings(s *survey) []finding {
	var found []finding
	switch {
	case s.nvml.err != nil:
		f := trouble("", s.nvml.err)
		if s.smi.source != "" && s.smi.err == nil && !silent(s.nvml.err) {
			// nvidia-smi knows the most important part.
			f.status = checks.Warn
			f.text += "; nvidia-smi answers in its place, which tells less"
		}
		found = append(found, f)
	case s.nvml.failure != nil:
		f := failed("", *s.nvml.failure)
		if s.nvml.failure.Step == wire.NVMLLoad && (s.cuda.works() || s.smi.err == nil) {
			f.status = checks.Warn // the GPUs work; only their health cannot be asked for
		}
		found = append(found, f)
	}
	if s.smi.err != nil && s.presence.tool != "" {
		f := silence(s.smi.err)
		if _, broken := s.smi.err.(toolError); broken { //nolint:errorlint // askSMI returns it as it is
			f = finding{status: checks.Fail, text: s.smi.err.Error(), remedy: remedyModule}
		}
		found = append(found, f)
	}
	return found
}

// missing compares how many GPUs each side sees, and how many there should be.
func (d *Driver) missing(s *survey) []finding {
	var found []finding
	m := s.management()
	nodes, listed, whole := len(s.presence.devices), m.count, !m.partitioned()
	if s.cuda.works() && whole && !d.chosen() && len(s.cuda.devices) < listed {
		found = append(found, finding{
			status: checks.Fail, remedy: remedyBus,
			text: fmt.Sprintf("%s sees %s, CUDA only %d", m.source, count(listed, "GPU", "GPUs"), len(s.cuda.devices)),
		})
	}
	if m.err == nil && m.failure == nil && nodes > listed && listed > 0 {
		found = append(found, finding{
			status: checks.Warn, remedy: "Look for Xid 79 in the kernel's log of the host (dmesg); a GPU may have fallen off the bus.",
			text: fmt.Sprintf("%s for GPUs, and %s sees only %d", count(nodes, "device node", "device nodes"), m.source, listed),
		})
	}
	if m.err == nil && m.failure == nil && listed == 0 {
		found = append(found, finding{
			status: checks.Fail, remedy: remedyVisible, text: m.source + " sees no GPU, though there should be one",
		})
	}
	want := d.config.GPUCount
	have := max(listed, len(s.units(d.chosen())))
	if want.Value > have && s.listed() {
		found = append(found, finding{
			status: checks.Fail, remedy: remedyVisible,
			text: fmt.Sprintf("%s, %d expected (%s)", count(have, "GPU is here", "GPUs are here"), want.Value, want.Origin),
		})
	}
	return found
}

func healthFacts(s *survey) []checks.Fact {
	m := s.management()
	facts := []checks.Fact{
		{Name: "source", Value: m.source, Text: "from " + m.source},
		{Name: "gpus", Value: m.count},
	}
	for _, h := range m.health {
		unit := factName(unit{name: unitName(h.Index)})
		add := func(name string, value any, format string) {
			facts = append(facts, checks.Fact{Name: unit + name, Value: value, Text: fmt.Sprintf(format, value)})
		}
		add("_model", h.Name, "%s")
		if h.Temperature != nil {
			add("_celsius", *h.Temperature, "%d °C")
		}
		if h.ECCVolatile != nil {
			add("_ecc_uncorrected", *h.ECCVolatile, "%d uncorrectable errors")
		} else {
			add("_ecc_uncorrected", "n/a", "uncorrectable errors %s")
		}
		if h.ECCAggregate != nil && *h.ECCAggregate > 0 {
			add("_ecc_lifetime", *h.ECCAggregate, "%d uncorrectable errors in its life")
		}
		if h.Persistence != nil {
			add("_persistence", *h.Persistence, "persistence mode: %v")
		}
		if h.MIG != nil && *h.MIG {
			add("_slices", len(h.MIGDevices), "%d MIG slices")
		}
	}
	if s.logErr != nil {
		facts = append(facts, checks.Fact{
			Name: "kernel_log", Value: "unreadable", Text: "the kernel's log is not readable here, so Xid errors before this test are not known",
		})
	}
	return facts
}
