package metrics

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

const namespace = "runpodctl_worker_"

// The kinds of metric that Prometheus tells apart.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

// page is what Prometheus reads: metrics in its text format.
type page struct{ bytes.Buffer }

func (m *Metrics) servePage(w http.ResponseWriter, _ *http.Request) {
	var p page
	m.writeCounted(&p)
	m.writeLookedUp(&p)
	writeProcess(&p, m.began)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(p.Bytes()) // whoever asked is gone
}

// head begins a metric.
func (p *page) head(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// value is a line of a metric. Its labels are given as name, value, name, value.
func (p *page) value(v float64, name string, labels ...string) {
	separator := "{"
	p.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		fmt.Fprintf(p, `%s%s="%s"`, separator, labels[i], escape.Replace(labels[i+1]))
		separator = ","
	}
	if len(labels) > 0 {
		p.WriteByte('}')
	}
	fmt.Fprintf(p, " %g\n", v)
}

// single is a metric without labels.
func (p *page) single(name, kind, help string, v float64) {
	p.head(name, kind, help)
	p.value(v, name)
}

// counts is a counter with one label.
func (p *page) counts(name, help, label string, n map[string]int) {
	p.head(name, counter, help)
	for _, value := range slices.Sorted(maps.Keys(n)) {
		p.value(float64(n[value]), name, label, value)
	}
}

func (p *page) times(name, help string, t times) {
	p.head(name, histogram, help)
	sum := 0
	for i, n := range t.counts {
		bound := "+Inf"
		if i < len(t.bounds) {
			bound = fmt.Sprint(t.bounds[i])
		}
		sum += n
		p.value(float64(sum), name+"_bucket", "le", bound)
	}
	p.value(t.sum, name+"_sum")
	p.value(float64(sum), name+"_count")
}
