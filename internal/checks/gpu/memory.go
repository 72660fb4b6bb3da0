package gpu

import (
	"context"
	"fmt"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/config"
)

// Memory is the check that writes to the memory of every GPU and reads it back, and copies between GPUs.
func (d *Driver) Memory() checks.Check {
	return d.check(checks.Check{
		ID: "gpu_memory", Name: "_gpu_health_check", Title: "GPU memory", Phase: checks.Early, Switch: config.SkipGPU,
	}, func(ctx context.Context, p *pass, s *survey) checks.Result {
		for _, err := range []error{d.config.GPUMaxErrors.Err, d.config.GPUTestPath.Err, d.xidErr} {
			if err != nil {
				return checks.Misread(err)
			}
		}
		if path := d.config.GPUTestPath.Value; path != "" {
			return d.userTest(ctx, path)
		}
		return d.testMemory(ctx, p, s)
	})
}

func (d *Driver) testMemory(ctx context.Context, p *pass, s *survey) checks.Result {
	units, found, s := d.testable(ctx, p, s)
	var trials []trial
	if len(units) > 0 {
		watch := d.watch(ctx, s)
		trials = d.try(ctx, s, units, "memory")
		var peers []finding
		if worst(findings(trials)) == checks.Pass {
			peers = d.testPeers(ctx, s, units)
		}
		found = append(found, findings(trials)...)
		found = append(found, peers...)
		found = append(found, d.xids.judgeAll(watch())...)
	}
	found = d.busy(found, checks.Early)
	good := checks.Result{
		Summary: fmt.Sprintf("%s: written, read back and compared", howMany(units)),
		Said:    passed(len(units), versionsOf(s).effective().String()),
		Facts:   append(unitFacts(units), memoryFacts(trials)...),
	}
	res := conclude(good, found, d.config.GPUMaxErrors.Value)
	switch res.Status {
	case checks.Fail:
		res.Said = "GPU memory allocation test failed: " + res.Summary
	case checks.Warn:
		res.Said = good.Said
	case checks.Error:
		if m := s.management(); m.source == tool && m.err == nil {
			res.Summary += fmt.Sprintf("; nvidia-smi lists %s, which proves nothing about memory", count(m.count, "GPU", "GPUs"))
		}
	default:
	}
	return res
}

// passed is the SDK's sentence for a test that passed.
func passed(gpus int, cuda string) string {
	if cuda == "" || cuda == (checks.Version{}).String() {
		cuda = "unknown"
	}
	return fmt.Sprintf("GPU binary test passed: %d GPU(s) healthy (CUDA %s)", gpus, cuda)
}

func findings(trials []trial) []finding {
	var found []finding
	for _, t := range trials {
		found = append(found, t.findings()...)
	}
	return found
}

// memoryFacts are what was measured on the way.
func memoryFacts(trials []trial) []checks.Fact {
	var facts []checks.Fact
	for _, t := range trials {
		test, _ := data[wire.MemoryTest](t.lines, wire.CUDAMemory)
		if test.Bytes > 0 {
			facts = append(facts, checks.Fact{Name: factName(t.unit) + "_tested_bytes", Value: test.Bytes, Text: size(test.Bytes) + " over the bus"})
		}
		fill, _ := data[wire.FillTest](t.lines, wire.CUDAFill)
		if fill.Bytes > 0 {
			facts = append(facts, checks.Fact{
				Name: factName(t.unit) + "_memory_gbps", Value: fill.GBps, Text: fmt.Sprintf("%s on the device, %.0f GB/s", size(fill.Bytes), fill.GBps),
			})
		}
		if line, ok := find(t.lines, wire.CUDAFill); ok && line.State == wire.StateSkip {
			facts = append(facts, checks.Fact{Name: factName(t.unit) + "_fill", Value: "skipped", Text: line.Detail})
		}
	}
	return facts
}

// watch has NVML note the errors that our own tests provoke. What it returns ends that, and lists them. Where NVML
// cannot do so, there are none.
func (d *Driver) watch(ctx context.Context, s *survey) func() []xidEvent {
	if s.nvml.err != nil || s.nvml.failure != nil || len(s.nvml.health) == 0 {
		return func() []xidEvent { return nil }
	}
	w := d.startWatch(ctx, s)
	return func() []xidEvent {
		var events []xidEvent
		for _, e := range w.end() {
			if e.Type == xidEventType {
				events = append(events, xidEvent{gpu: nameByUUID(s, e.UUID), id: int(e.Data)}) //nolint:gosec // a number below 1000
			}
		}
		return events
	}
}

const xidEventType = 8

func nameByUUID(s *survey, uuid string) string {
	for _, h := range s.nvml.health {
		if h.UUID == uuid {
			return unitName(h.Index)
		}
	}
	return strings.TrimSpace(uuid)
}
