package metrics

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shown are the metrics that there are, with their help.
func shown(t *testing.T) map[string]string {
	t.Helper()
	m := New(of(&State{Phase: "ready", Slots: 1}))
	m.Took(1, time.Second, nil)
	m.Pinged(nil)
	m.Pinged(errors.New("no"))
	m.Cached("sync", Copied{Files: 1})
	m.Checked(Check{ID: "disk", Result: "pass"})
	families, err := m.registry.Gather()
	require.NoError(t, err)
	all := map[string]string{}
	for _, family := range families {
		all[family.GetName()] = family.GetHelp()
	}
	return all
}

func TestDashboard_ShowsMetricsThatExist(t *testing.T) {
	text, err := os.ReadFile("../../docs/grafana-dashboard.json")
	require.NoError(t, err)
	var dashboard any
	require.NoError(t, json.Unmarshal(text, &dashboard))

	all, named := shown(t), map[string]bool{}
	metric := regexp.MustCompile(`\b(?:runpodctl_worker|process|go)_[a-z_]+`)
	for _, query := range queries(dashboard) {
		found := metric.FindAllString(query, -1)
		require.NotEmpty(t, found, query)
		for _, name := range found {
			name = strings.TrimSuffix(name, "_bucket")
			require.Contains(t, all, name, query)
			named[name] = true
		}
	}
	for name := range all {
		if strings.HasPrefix(name, namespace) && name != namespace+"_slot_busy_ratio" { // which it has over time
			require.True(t, named[name], "%s is on no panel", name)
		}
	}
}

// queries are all texts under "expr" and "query", wherever they stand.
func queries(v any) (found []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			found = append(found, queries(item)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text, ok := v[key].(string); ok && (key == "expr" || key == "query") {
				found = append(found, text)
				continue
			}
			found = append(found, queries(v[key])...)
		}
	}
	return found
}

func TestPage_ListsTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	for name, help := range shown(t) {
		if strings.HasPrefix(name, namespace) {
			require.Contains(t, string(page), "| `"+name+"` | "+help+" |")
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `("+namespace+"_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		require.Contains(t, shown(t), row[1])
	}
}
