package gpu

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// Init is the check that every GPU takes a context, a small allocation and a synchronization.
func (d *Driver) Init() checks.Check {
	return d.check(checks.Check{
		ID: "cuda_init", Name: "_cuda_init_check", Title: "CUDA initialization", Phase: checks.Start,
	}, func(ctx context.Context, p *pass, s *survey) checks.Result {
		units, found, s := d.testable(ctx, p, s)
		trials := d.try(ctx, s, units, "init")
		found = d.busy(append(found, findings(trials)...), checks.Start)
		good := checks.Result{
			Summary: howMany(units) + " initialised",
			Said:    fmt.Sprintf("CUDA initialization passed: %d device(s) initialized successfully", len(units)),
			Facts:   append(unitFacts(units), contextFacts(trials)...),
		}
		res := conclude(good, found, d.config.GPUMaxErrors.Value)
		if res.Status == checks.Fail {
			res.Said = "CUDA initialization failed: " + res.Summary
		}
		return res
	})
}

// contextFacts are how long the contexts took.
func contextFacts(trials []trial) []checks.Fact {
	var facts []checks.Fact
	for _, t := range trials {
		if line, ok := find(t.lines, wire.CUDAContext); ok && line.State == wire.StateOK {
			facts = append(facts, checks.Fact{
				Name: factName(t.unit) + "_context_ms", Value: line.MS, Text: fmt.Sprintf("context in %.0f ms", line.MS),
			})
		}
	}
	return facts
}

// The product that the benchmark computes, and above which time for it a GPU is worth a look.
const (
	benchmarkSize = 1024
	benchmarkRuns = 6
	slowTime      = 100 * time.Millisecond
)

// Benchmark is the check that every GPU multiplies two matrices, right and in time. What comes before the product, such
// as the context, is not counted.
func (d *Driver) Benchmark() checks.Check {
	return d.check(checks.Check{
		ID: "gpu_benchmark", Name: "_benchmark_check", Title: "GPU compute", Phase: checks.Start,
	}, func(ctx context.Context, p *pass, s *survey) checks.Result {
		if err := d.config.Benchmark.Err; err != nil {
			return checks.Misread(err)
		}
		units, found, s := d.testable(ctx, p, s)
		trials := d.try(ctx, s, units, "compute", "--n", strconv.Itoa(benchmarkSize), "--runs", strconv.Itoa(benchmarkRuns))
		var slowest float64
		for _, t := range trials {
			found = append(found, judgeCompute(t, d.config.Benchmark.Value)...)
			result, _ := data[wire.Compute](t.lines, wire.CUDACompute)
			slowest = max(slowest, result.MeanMS)
		}
		found = d.busy(found, checks.Start)
		good := checks.Result{
			Summary:   fmt.Sprintf("a %d×%d product in %s, right in every element", benchmarkSize, benchmarkSize, milliseconds(slowest)),
			Said:      "GPU compute benchmark passed: Matrix multiply completed in " + milliseconds(slowest),
			Facts:     append(unitFacts(units), computeFacts(trials)...),
			Threshold: benchmarkThreshold(d.config.Benchmark),
		}
		res := conclude(good, found, d.config.GPUMaxErrors.Value)
		switch {
		case res.Status == checks.Fail && slowest > inMS(d.config.Benchmark.Value):
			res.Said = fmt.Sprintf("GPU compute too slow: Matrix multiply took %s (max: %s)",
				milliseconds(slowest), milliseconds(inMS(d.config.Benchmark.Value)))
		case res.Status == checks.Warn:
			res.Said = good.Said
		}
		return res
	})
}

// judgeCompute looks at a product and its time. A limit below the slow time is the user's word, and counts.
func judgeCompute(t trial, limit time.Duration) []finding {
	if found := t.findings(); len(found) > 0 {
		return found
	}
	result, ok := data[wire.Compute](t.lines, wire.CUDACompute)
	f := finding{unit: t.unit.name, remedy: "Another process may share the GPU (nvidia-smi); else look at power limit and temperature (nvidia-smi -q -d PERFORMANCE)."}
	switch {
	case !ok:
		f.status, f.text = checks.Error, "the product was not measured"
		f.remedy = "This is a fault of the helper. Use the one of this release, or report it."
	case result.MeanMS > inMS(limit):
		f.status = checks.Fail
		f.text = fmt.Sprintf("a %d×%d product took %s (limit %s)", result.N, result.N, milliseconds(result.MeanMS), limit)
	case result.MeanMS > inMS(slowTime):
		f.status = checks.Warn
		f.text = fmt.Sprintf("a %d×%d product took %s, which is slow", result.N, result.N, milliseconds(result.MeanMS))
	default:
		return nil
	}
	return []finding{f}
}

func benchmarkThreshold(limit checks.Knob[time.Duration]) *checks.Threshold {
	return &checks.Threshold{
		Value: limit.Value.Seconds(), Text: fmt.Sprintf("at most %s; above %s a warning", limit.Value, slowTime), Origin: limit.Origin,
	}
}

func computeFacts(trials []trial) []checks.Fact {
	var facts []checks.Fact
	for _, t := range trials {
		if r, ok := data[wire.Compute](t.lines, wire.CUDACompute); ok && r.MeanMS > 0 {
			facts = append(facts, checks.Fact{
				Name: factName(t.unit) + "_product_ms", Value: r.MeanMS,
				Text: fmt.Sprintf("%s a product, %.0f GFLOPS; the first took %s", milliseconds(r.MeanMS), r.GFLOPS, milliseconds(r.FirstMS)),
			})
		}
	}
	return facts
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// milliseconds is a time as the SDK writes it, with a decimal where it would be 0.
func milliseconds(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1fms", ms)
	}
	return fmt.Sprintf("%.0fms", ms)
}
