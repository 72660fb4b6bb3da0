package cudaprobe

import (
	"errors"
	"time"
	"unsafe"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/cuda"
	"runpodctl-worker/internal/cudaprobe/kernels"
)

var errWrongProduct = errors.New("the GPU computed a wrong product")

// compute compiles the matrix product for the GPU, measures it and verifies the result.
func (g *gpu) compute(n, runs int) bool {
	var kernel cuda.Kernel
	return g.step(wire.CUDACompile, func() (any, error) {
		module, err := g.context.Load(kernels.PTX())
		if err != nil {
			return nil, err
		}
		kernel, err = module.Kernel(kernels.Matmul)
		return nil, err
	}) && g.step(wire.CUDACompute, func() (any, error) {
		result := wire.Compute{N: n}
		err := g.context.Scope(func() error { return g.multiply(kernel, runs, &result) })
		return result, err
	})
}

func (g *gpu) multiply(kernel cuda.Kernel, runs int, result *wire.Compute) error {
	n := result.N
	a, b := testMatrices(n)
	c := make(matrix, n*n)
	var at [3]cuda.Address
	for i, m := range []matrix{a, b, c} {
		var err error
		if at[i], err = g.context.Alloc(uint64(n*n) * wordSize); err != nil {
			return err
		}
		// The result's place too: a product that is never written must not look like the last one.
		if err := cuda.Write(g.context, at[i], m); err != nil {
			return err
		}
	}
	watch, err := g.context.NewStopwatch()
	if err != nil {
		return err
	}
	edge := uint32(n)
	times := make([]time.Duration, runs)
	for i := range times {
		times[i], err = watch.Measure(func() error {
			return kernel.Launch(kernels.MatmulShape(n), unsafe.Pointer(&at[0]), unsafe.Pointer(&at[1]),
				unsafe.Pointer(&at[2]), unsafe.Pointer(&edge))
		})
		if err != nil {
			return err
		}
	}
	summarize(times, result)
	if err := cuda.Read(g.context, c, at[2]); err != nil {
		return err
	}
	if wrong := verify(a, b, c, n); wrong != nil {
		result.Wrong = true
		result.Row, result.Col, result.Want, result.Got = wrong.row, wrong.col, wrong.want, wrong.got
		return errWrongProduct
	}
	return nil
}

// summarize keeps the first run apart: it warms the GPU up.
func summarize(times []time.Duration, to *wire.Compute) {
	rest := times[1:]
	best, sum := rest[0], time.Duration(0)
	for _, t := range rest {
		best = min(best, t)
		sum += t
	}
	to.FirstMS, to.BestMS = inMS(times[0]), inMS(best)
	to.MeanMS = inMS(sum) / float64(len(rest))
	if n := float64(to.N); best > 0 {
		to.GFLOPS = 2 * n * n * n / best.Seconds() / 1e9
	}
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
