package declared

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/lazy"
)

// parse makes checks of the text of a file. Its error begins with the place: ":7: what is wrong".
func parse(text []byte, deps Deps) ([]checks.Check, error) {
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, located(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New(": want one YAML document")
	}
	var file struct {
		Checks []yaml.Node `yaml:"checks"`
	}
	if len(document.Content) > 0 {
		if err := strict(document.Content[0], &file); err != nil {
			return nil, located(err)
		}
	}
	if len(file.Checks) == 0 {
		return nil, errors.New(`: no checks in it; want a list under "checks:"`)
	}
	list := make([]checks.Check, 0, len(file.Checks))
	taken := slices.Clone(deps.Taken)
	for _, node := range file.Checks {
		c, err := parseEntry(&node, deps, taken)
		if err != nil {
			return nil, located(err)
		}
		taken = append(taken, c.ID)
		list = append(list, c)
	}
	return list, nil
}

func parseEntry(node *yaml.Node, deps Deps, taken []string) (checks.Check, error) {
	var e entry
	if err := strict(node, &e); err != nil {
		return checks.Check{}, err
	}
	c, err := e.check(deps)
	if err == nil && slices.Contains(taken, c.ID) {
		err = fmt.Errorf("name %q: the id %s is taken", e.Name, c.ID)
	}
	if err != nil {
		return checks.Check{}, at(node, "%w", err)
	}
	return c, nil
}

// lineError is an error at a line of the file.
type lineError struct {
	line int
	err  error
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.err) }

func at(node *yaml.Node, format string, args ...any) error {
	return &lineError{node.Line, fmt.Errorf(format, args...)}
}

// strict decodes a mapping into a struct, whose yaml tags are all the keys that there may be: a misspelt key would be a
// check that never fails.
func strict(node *yaml.Node, into any) error {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return at(node, "want names and values")
	}
	kind := reflect.TypeOf(into).Elem()
	var known []string
	for field := range kind.Fields() {
		known = append(known, field.Tag.Get("yaml"))
	}
	for i := 0; i < len(node.Content); i += 2 {
		if key := node.Content[i]; !slices.Contains(known, key.Value) {
			return at(key, "unknown key %q; known are %s", key.Value, strings.Join(known, ", "))
		}
		if value := node.Content[i+1]; value.Tag == "!!null" {
			return at(value, "%s: there is no value", node.Content[i].Value)
		}
	}
	return node.Decode(into)
}

var (
	yamlLine = lazy.Regexp(`^(?:yaml: )?line (\d+): (.*)$`)
	mismatch = lazy.Regexp("^cannot unmarshal !!\\w+ (?:`(.*)` )?into (.*)$")
)

// typeNames are the types of the format, for people.
var typeNames = map[string]string{
	"string": "text", "float64": "a number", "int": "a whole number", "bool": "true or false",
	"[]int": "a list of whole numbers", "[]string": "a list of texts", "[]yaml.Node": "a list",
	"map[string]string": "names and texts",
}

// located writes an error as ":7: what is wrong".
func located(err error) error {
	if e, ok := errors.AsType[*lineError](err); ok {
		return fmt.Errorf(":%d: %w", e.line, e.err)
	}
	text := err.Error()
	if e, ok := errors.AsType[*yaml.TypeError](err); ok && len(e.Errors) > 0 {
		text = e.Errors[0]
	}
	text, _, _ = strings.Cut(text, "\n")
	m := yamlLine().FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf(": %s", strings.TrimPrefix(text, "yaml: "))
	}
	if bad := mismatch().FindStringSubmatch(m[2]); bad != nil && typeNames[bad[2]] != "" {
		return fmt.Errorf(":%s: want %s, not %q", m[1], typeNames[bad[2]], bad[1])
	}
	return fmt.Errorf(":%s: %s", m[1], m[2])
}
