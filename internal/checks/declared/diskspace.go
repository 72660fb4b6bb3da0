package declared

import (
	"context"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/host"
)

// origin is who asks for the thresholds of this package.
const origin = "checks file"

// diskSpace is what must be free where a path lies.
type diskSpace struct {
	Path       string  `yaml:"path"`
	MinGB      float64 `yaml:"min_free_gb"`
	MinPercent float64 `yaml:"min_free_percent"`
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *diskSpace) UnmarshalYAML(node *yaml.Node) error {
	type plain diskSpace
	if err := strict(node, (*plain)(d)); err != nil {
		return err
	}
	switch {
	case d.Path == "":
		return at(node, "disk: want a path")
	case !(d.MinGB >= 0 && d.MinPercent >= 0 && d.MinPercent <= 100 && d.MinGB+d.MinPercent > 0):
		return at(node, "disk: want min_free_gb above 0, or min_free_percent up to 100, or both")
	}
	return nil
}

func (d *diskSpace) run(ctx context.Context, _ Deps) checks.Result {
	const remedy = "Delete what need not be kept there, or make it larger."
	s, err := host.SpaceOf(ctx, d.Path)
	if err != nil {
		return failed([]string{d.Path + ": " + err.Error()}, "See whether the path is there and its storage answers.", "")
	}
	found := fmt.Sprintf("%.1f GB free of %.1f GB (%.1f %%)", s.FreeGB, s.TotalGB, s.FreePercent)
	var problems []string
	if s.FreeGB < d.MinGB || s.FreePercent < d.MinPercent {
		problems = append(problems, d.Path+": "+found)
	}
	res := failed(problems, remedy, found)
	res.Threshold = &checks.Threshold{Value: d.thresholdValue(), Text: d.thresholdText(), Origin: origin}
	res.Facts = []checks.Fact{
		{Name: "free_gb", Value: s.FreeGB, Text: fmt.Sprintf("%.1f GB", s.FreeGB)},
		{Name: "free_percent", Value: s.FreePercent, Text: fmt.Sprintf("%.1f %%", s.FreePercent)},
	}
	return res
}

func (d *diskSpace) thresholdValue() float64 {
	if d.MinGB > 0 {
		return d.MinGB
	}
	return d.MinPercent
}

func (d *diskSpace) thresholdText() string {
	var parts []string
	if d.MinGB > 0 {
		parts = append(parts, fmt.Sprintf("%v GB", d.MinGB))
	}
	if d.MinPercent > 0 {
		parts = append(parts, fmt.Sprintf("%v %%", d.MinPercent))
	}
	return "at least " + strings.Join(parts, " and ") + " free"
}
