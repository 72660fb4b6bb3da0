package declared

import (
	"context"
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
)

// envList is variables that must not be empty. Their values are never shown.
type envList []variable

type variable struct {
	Name    string  `yaml:"name"`
	Matches pattern `yaml:"matches"`
}

// pattern is a regular expression; without one anything matches.
type pattern struct{ *regexp.Regexp }

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *pattern) UnmarshalYAML(node *yaml.Node) (err error) {
	if node.Kind != yaml.ScalarNode { // [0-9] is a list, and would match anything
		return at(node, "matches: want a regular expression as one text; put it in quotes")
	}
	if p.Regexp, err = regexp.Compile(node.Value); err != nil {
		return at(node, "matches: %w", err)
	}
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler. An item is a name, or has one and a regular expression.
func (l *envList) UnmarshalYAML(node *yaml.Node) (err error) {
	*l, err = listOf(node, func(n *yaml.Node) (v variable, err error) {
		v.Name = n.Value
		if n.Kind != yaml.ScalarNode {
			v.Name = ""
			err = strict(n, &v)
		}
		if err == nil && v.Name == "" {
			err = at(n, "env: an entry without a name")
		}
		return v, err
	})
	return err
}

func (l envList) run(_ context.Context, deps Deps) checks.Result {
	var problems []string
	for _, v := range l {
		value, _ := deps.Lookup(v.Name)
		switch {
		case value == "":
			problems = append(problems, v.Name+" is not set")
		case v.Matches.Regexp != nil && !v.Matches.MatchString(value):
			problems = append(problems, fmt.Sprintf("%s does not match %s", v.Name, v.Matches))
		}
	}
	return failed(problems, "Set the variables in the image, or in the endpoint's or pod's environment.", allOf(len(l), "set"))
}
