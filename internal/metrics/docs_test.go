package metrics

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// read is a page as Prometheus reads it.
func read(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	code, text := look(t, m, "/metrics")
	require.Equal(t, http.StatusOK, code)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err, text)
	return families
}

// shown are the metrics that there are, with their help.
func shown(t *testing.T) map[string]string {
	t.Helper()
	m := New(of(&State{Phase: "ready", Slots: 1}))
	m.Took(1, time.Second, nil)
	m.Pinged(nil)
	m.Pinged(errors.New("no"))
	m.Cached("sync", Copied{Files: 1})
	m.Checked(Check{ID: "disk", Result: "pass"})
	all := map[string]string{}
	for name, family := range read(t, m) {
		all[name] = family.GetHelp()
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
		if strings.HasPrefix(name, namespace) && name != namespace+"slot_busy_ratio" { // which it has over time
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
	for _, row := range regexp.MustCompile("(?m)^\\| `("+namespace+"[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		require.Contains(t, shown(t), row[1])
	}
}
