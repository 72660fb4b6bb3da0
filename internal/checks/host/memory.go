package host

import (
	"context"
	"fmt"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/mem"

	"runpodctl-worker/internal/checks"
)

// Memory checks how much memory this container may still use: of the host's, or below the limits of its cgroups.
func Memory(cfg checks.Config) checks.Check {
	return checks.Check{
		ID: "memory", Name: "_memory_check", Title: "Memory", Phase: checks.Early, Builtin: true, Vital: true,
		Run: memory{here, cfg.MinMemoryGB}.run,
	}
}

type memory struct {
	box box
	min checks.Knob[float64]
}

// memoryFigures is what the container has. The source is whoever leaves it least.
type memoryFigures struct {
	total, available uint64
	limit            uint64 // the smallest of the cgroups; 0: none
	source           string
}

func (m memory) run(ctx context.Context) checks.Result {
	if m.min.Err != nil {
		return checks.Misread(m.min.Err)
	}
	f, err := m.box.memory(ctx)
	if err != nil {
		return checks.Result{
			Status: checks.Error, Summary: "cannot tell how much memory there is: " + err.Error(),
			Remedy: "See why the kernel's figures cannot be read: /proc and /sys/fs/cgroup must be those of this container.",
		}
	}
	res := checks.Result{
		Summary:   fmt.Sprintf("%s of %s available", amount(f.available), amount(f.total)),
		Said:      fmt.Sprintf("Memory check passed: %.2fGB available (of %.2fGB total)", inGB(f.available), inGB(f.total)),
		Threshold: &checks.Threshold{Value: m.min.Value, Text: "at least " + short(m.min.Value) + " GB available", Origin: m.min.Origin},
		Facts:     f.facts(),
	}
	if inGB(f.available) < m.min.Value {
		res.Status = m.severity(f)
		res.Said = fmt.Sprintf("Insufficient memory: %.2fGB available, %sGB required", inGB(f.available), pythonFloat(m.min.Value))
		res.Remedy = "Choose an instance with more memory, end what uses it, or set RUNPOD_MIN_MEMORY_GB to what the handler needs."
	}
	return res
}

// severity lets the default only warn where the container is so small that it could never be met: such are sold.
func (m memory) severity(f memoryFigures) checks.Status {
	if !m.min.Set() && f.limit > 0 && inGB(f.limit) <= m.min.Value {
		return checks.Warn
	}
	return checks.Fail
}

func (f memoryFigures) facts() []checks.Fact {
	facts := []checks.Fact{
		{Name: "total_gb", Value: inGB(f.total), Text: amount(f.total)},
		{Name: "available_gb", Value: inGB(f.available), Text: amount(f.available)},
		{Name: "source", Value: f.source},
	}
	if f.limit > 0 {
		facts = append(facts, checks.Fact{Name: "limit_gb", Value: inGB(f.limit), Text: amount(f.limit)})
	}
	return facts
}

// memory is the host's figure, cut to what the cgroups leave of it.
func (b box) memory(ctx context.Context) (memoryFigures, error) {
	ctx = context.WithValue(ctx, common.EnvKey, common.EnvMap{common.HostProcEnvKey: b.at("/proc")})
	host, err := mem.VirtualMemoryWithContext(ctx)
	switch {
	case err != nil:
		return memoryFigures{}, fmt.Errorf("%s: %w", b.at("/proc/meminfo"), err)
	case host.Total == 0, host.Available > host.Total:
		return memoryFigures{}, fmt.Errorf("%s: %d bytes available of %d", b.at("/proc/meminfo"), host.Available, host.Total)
	}
	f := memoryFigures{total: host.Total, available: host.Available, source: "host"}
	groups, err := b.groups()
	if err != nil {
		return memoryFigures{}, err
	}
	for _, g := range groups {
		if f.limit == 0 || g.limit < f.limit {
			f.limit = g.limit
		}
		f.total = min(f.total, g.limit)
		if g.free < f.available {
			f.available, f.source = g.free, g.name
		}
	}
	return f, nil
}
