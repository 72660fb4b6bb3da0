package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// unit is what a test runs on: a GPU, or a MIG slice of one.
type unit struct {
	name  string // "GPU 0", "GPU 0 slice 1"
	model string
	uuid  string
	index int
	total uint64 // bytes; 0: not known
	free  uint64
	known bool // free is known
	slice bool
}

// units are the GPUs that CUDA may use here, each divided one by its slices: CUDA itself shows a process one slice only.
// Where its helper cannot run, they are those that the management side lists.
func (s *survey) units(visible bool) []unit {
	management := s.management()
	memory := map[string]wire.NVMLMemory{}
	for _, h := range management.health {
		if h.Memory != nil {
			memory[h.UUID] = *h.Memory
		}
		maps.Copy(memory, h.MIGMemory)
	}
	var list []unit
	add := func(u unit) {
		if slices.ContainsFunc(list, func(have unit) bool { return have.uuid == u.uuid }) {
			return
		}
		if m, ok := memory[u.uuid]; ok {
			u.free, u.known = m.Free, m.Free > 0 || m.Used > 0
			if u.total == 0 {
				u.total = m.Total
			}
		}
		list = append(list, u)
	}
	divided := management.partitioned() && !visible
	for _, d := range s.cuda.devices {
		slice := strings.HasPrefix(d.UUID, "MIG-")
		if divided && slice {
			continue
		}
		add(unit{
			name: unitName(d.Index), model: d.Name, uuid: d.UUID, index: d.Index, total: d.Total, slice: slice,
		})
	}
	_, unasked := s.cuda.err.(startError) //nolint:errorlint // ask returns it as it is
	for _, h := range management.health {
		if h.MIG == nil || !*h.MIG {
			if unasked {
				add(unit{name: unitName(h.Index), model: h.Name, uuid: h.UUID, index: h.Index})
			}
			continue
		}
		if !divided {
			continue
		}
		list = slices.DeleteFunc(list, func(u unit) bool { return u.uuid == h.UUID })
		for i, id := range h.MIGDevices {
			add(unit{name: fmt.Sprintf("GPU %d slice %d", h.Index, i), model: h.Name, uuid: id, index: h.Index, slice: true})
		}
	}
	return list
}

// unusable is why there is nothing to test although there should be.
func (s *survey) unusable() []finding {
	switch {
	case s.cuda.failure != nil:
		f := failed("", *s.cuda.failure)
		if s.cuda.failure.Code == cudaNoDevice && s.management().count > 0 {
			f.text += fmt.Sprintf("; %s sees %d", s.management().source, s.management().count)
		}
		if s.cuda.failure.Step == wire.CUDALoad && len(s.presence.libraries) == 0 {
			f.text = "a GPU is here, the driver's libraries are not"
			if len(s.presence.devices) > 0 {
				f.text = "GPU device nodes are here, the driver's libraries are not"
			}
			f.remedy = "Start the container with the NVIDIA runtime (--gpus all). On a read-only root its ldconfig may have failed."
		}
		if s.cuda.failure.Step == wire.CUDAInit && len(s.presence.devices) > 0 {
			f.text += blocked(s.presence.root)
		}
		return []finding{f}
	case s.cuda.err != nil:
		return []finding{trouble("", s.cuda.err)}
	case len(s.cuda.devices) == 0:
		return []finding{{status: checks.Fail, text: "CUDA lists no GPU", remedy: remedyVisible}}
	}
	return nil
}

// howMany says how many units there are, and of what kind.
func howMany(units []unit) string {
	if len(units) > 0 && !slices.ContainsFunc(units, func(u unit) bool { return !u.slice }) {
		return count(len(units), "MIG slice", "MIG slices")
	}
	return count(len(units), "GPU", "GPUs")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// unitFacts are what a report says of each unit.
func unitFacts(units []unit) []checks.Fact {
	var facts []checks.Fact
	for _, u := range units {
		facts = append(facts, checks.Fact{Name: factName(u) + "_model", Value: u.model, Text: u.name + ": " + u.model})
		if u.total > 0 {
			facts = append(facts, checks.Fact{Name: factName(u) + "_total_gb", Value: gigabytes(u.total), Text: size(u.total)})
		}
		if u.known {
			facts = append(facts, checks.Fact{Name: factName(u) + "_free_gb", Value: gigabytes(u.free), Text: size(u.free)})
		}
	}
	return facts
}

func factName(u unit) string { return strings.ReplaceAll(strings.ToLower(u.name), " ", "_") }

func gigabytes(bytes uint64) float64 { return float64(bytes) / (1 << 30) }

func size(bytes uint64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	case bytes < 1<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GB", gigabytes(bytes))
}
