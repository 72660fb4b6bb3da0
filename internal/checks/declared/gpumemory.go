package declared

import (
	"context"
	"fmt"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
)

// gpuMemory is how much memory every GPU must have, in GB of 1024³ bytes, used or not.
type gpuMemory float64

// UnmarshalYAML implements yaml.Unmarshaler.
func (g *gpuMemory) UnmarshalYAML(node *yaml.Node) error {
	if err := node.Decode((*float64)(g)); err != nil {
		return err
	}
	if !(*g > 0) {
		return at(node, "gpu_memory_gb: want more than 0, not %s", node.Value)
	}
	return nil
}

func (g *gpuMemory) run(ctx context.Context, deps Deps) checks.Result {
	const remedy = "Choose a GPU type with more memory, or see why this box shows none."
	gpus, err := deps.GPUs(ctx)
	if err != nil {
		return failed([]string{"cannot ask the GPUs: " + err.Error()}, remedy, "")
	}
	if len(gpus) == 0 {
		return failed([]string{"no GPU"}, remedy, "")
	}
	var problems []string
	var facts []checks.Fact
	for _, gpu := range gpus {
		facts = append(facts, checks.Fact{
			Name: fmt.Sprintf("gpu_%d_total_gb", gpu.Index), Value: gpu.TotalGB,
			Text: fmt.Sprintf("%.1f GB, %.1f GB free (%s)", gpu.TotalGB, gpu.FreeGB, gpu.Name),
		})
		if gpu.TotalGB < float64(*g) {
			problems = append(problems, fmt.Sprintf("GPU %d (%s) has %.1f GB", gpu.Index, gpu.Name, gpu.TotalGB))
		}
	}
	res := failed(problems, remedy, fmt.Sprintf("%d of %d GPUs have it", len(gpus), len(gpus)))
	res.Threshold = &checks.Threshold{
		Value: float64(*g), Text: fmt.Sprintf("at least %v GB on every GPU", float64(*g)), Origin: origin,
	}
	res.Facts = facts
	return res
}
