package metrics

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

const namespace = "runpodctl_worker"

// The kinds of metric that Prometheus tells apart.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// family is a metric with all of its labels that counts from the start of the worker.
type family struct {
	name, kind, help string
	series           *metrics.Set
}

func (m *Metrics) family(name, kind, help string) family {
	f := family{name, kind, help, metrics.NewSet()}
	m.families = append(m.families, f)
	return f
}

// with is the counter of these labels.
func (f family) with(labels ...string) *metrics.Counter {
	return f.series.GetOrCreateCounter(series(f.name, labels...))
}

// series is a metric's full name with the labels that are given as name, value, name, value.
func series(name string, labels ...string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+escape.Replace(labels[i+1])+`"`)
	}
	if name = namespace + "_" + name; len(pairs) == 0 {
		return name
	}
	return name + "{" + strings.Join(pairs, ",") + "}"
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// page is what Prometheus reads. The library knows the values, but no words about them.
type page struct{ bytes.Buffer }

func (p *page) head(name, kind, help string) {
	name = series(name)
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (p *page) family(f family) {
	p.head(f.name, f.kind, f.help)
	f.series.WritePrometheus(p)
}

func (p *page) value(v float64, name string, labels ...string) {
	metrics.WriteGaugeFloat64(p, series(name, labels...), v)
}

// single is a metric without labels.
func (p *page) single(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.value(v, name)
}

func (m *Metrics) servePage(w http.ResponseWriter, _ *http.Request) {
	var p page
	for _, f := range m.families {
		p.family(f)
	}
	m.writeChecks(&p)
	m.writeNow(&p)
	metrics.WriteProcessMetrics(&p)
	metrics.WriteFDMetrics(&p)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.Bytes()) // whoever asked is gone
}
