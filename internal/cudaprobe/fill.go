package cudaprobe

import (
	"errors"
	"time"
	"unsafe"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/cuda"
	"runpodctl-worker/internal/cudaprobe/kernels"
)

const (
	maxFill   = 1 << 30
	fillShare = 10 // the default is a tenth of what is free
)

// fillSeeds are those of the two passes.
var fillSeeds = []uint32{0x5eed1234, ^uint32(0x5eed1234)}

// fill has the GPU write and check a larger region by itself. Without the driver's compiler it is skipped: that says
// nothing about the memory.
func (g *gpu) fill(bytes uint64) bool {
	return g.step(wire.CUDAFill, func() (any, error) {
		var test wire.FillTest
		err := g.context.Scope(func() error {
			module, err := g.context.Load(kernels.PTX())
			if refused, ok := errors.AsType[cuda.Error](err); ok && refused.Uncompiled() {
				return skipped{err}
			}
			if err != nil {
				return err
			}
			if test.Bytes, err = g.fillSize(bytes); err != nil {
				return err
			}
			return g.fillWith(module, &test)
		})
		if _, ok := errors.AsType[skipped](err); ok {
			return nil, err
		}
		return test, err
	})
}

func (g *gpu) fillSize(bytes uint64) (uint64, error) {
	if bytes > 0 {
		return bytes, nil
	}
	memory, err := g.context.Memory()
	return max(min(memory.Free/fillShare, maxFill)/wordSize*wordSize, wordSize), err
}

func (g *gpu) fillWith(module *cuda.Module, test *wire.FillTest) error {
	fill, err := module.Kernel(kernels.MemFill)
	if err != nil {
		return err
	}
	check, err := module.Kernel(kernels.MemCheck)
	if err != nil {
		return err
	}
	region, err := g.context.Alloc(test.Bytes)
	if err != nil {
		return err
	}
	counter, err := g.context.Alloc(wordSize)
	if err != nil {
		return err
	}
	watch, err := g.context.NewStopwatch()
	if err != nil {
		return err
	}
	bad := []uint32{0}
	if err := cuda.Write(g.context, counter, bad); err != nil {
		return err
	}
	words := test.Bytes / wordSize
	shape := kernels.MemoryShape(words)
	var took time.Duration
	for _, seed := range fillSeeds {
		pass, err := watch.Measure(func() error {
			if err := fill.Launch(shape, unsafe.Pointer(&region), unsafe.Pointer(&words), unsafe.Pointer(&seed)); err != nil {
				return err
			}
			return check.Launch(shape, unsafe.Pointer(&region), unsafe.Pointer(&words), unsafe.Pointer(&seed),
				unsafe.Pointer(&counter))
		})
		if err != nil {
			return err
		}
		took += pass
	}
	if took > 0 {
		passes := uint64(2 * len(fillSeeds)) // each is a write and a read
		test.GBps = float64(test.Bytes*passes) / took.Seconds() / 1e9
	}
	if err := cuda.Read(g.context, bad, counter); err != nil {
		return err
	}
	if test.BadWords = uint64(bad[0]); test.BadWords > 0 {
		return errMemoryDiffers
	}
	return nil
}
