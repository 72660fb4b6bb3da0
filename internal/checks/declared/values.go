package declared

import (
	"time"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
)

// phase is when an entry runs; none: at start.
type phase checks.Phase

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *phase) UnmarshalYAML(node *yaml.Node) error {
	for _, known := range []checks.Phase{checks.Early, checks.Start} {
		if node.Value == known.String() {
			*p = phase(known)
			return nil
		}
	}
	return at(node, "phase: want early or start, not %q", node.Value)
}

// duration is a time that is not over at once, such as 1.5s.
type duration time.Duration

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *duration) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := time.ParseDuration(node.Value)
	if err != nil || parsed <= 0 {
		return at(node, "%q is not a time such as 1.5s", node.Value)
	}
	*d = duration(parsed)
	return nil
}

// severity is what a check that does not hold means for a worker; none: it is unfit.
type severity string

const (
	severityFail severity = "fail"
	severityWarn severity = "warn"
)

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *severity) UnmarshalYAML(node *yaml.Node) error {
	*s = severity(node.Value)
	if *s != severityFail && *s != severityWarn {
		return at(node, "severity: want fail or warn, not %q", node.Value)
	}
	return nil
}

// soften makes a failure a warning where the user wants no more than that.
func (s severity) soften(r checks.Result) checks.Result {
	if s == severityWarn && r.Status == checks.Fail {
		r.Status = checks.Warn
	}
	return r
}

// listOf decodes each item of a list.
func listOf[T any](node *yaml.Node, item func(*yaml.Node) (T, error)) ([]T, error) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.SequenceNode || len(node.Content) == 0 {
		return nil, at(node, "want a list with something in it")
	}
	var all []T
	for _, n := range node.Content {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		v, err := item(n)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
