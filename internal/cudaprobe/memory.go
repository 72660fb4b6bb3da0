package cudaprobe

import (
	"errors"
	"math/bits"

	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/cudaprobe/cuda"
)

const (
	wordSize   = 4
	chunkWords = 1 << 20 // what the host holds of a region at a time
	initBytes  = 4 << 10 // enough to see that memory works at all
)

var errMemoryDiffers = errors.New("the memory does not hold what was written to it")

// memory writes a pattern, reads it back and compares, then once more with every bit inverted.
func (g *gpu) memory(bytes uint64) bool {
	return g.step(wire.CUDAMemory, func() (any, error) {
		test := wire.MemoryTest{Bytes: bytes}
		err := g.context.Scope(func() error {
			at, err := g.context.Alloc(bytes)
			if err != nil {
				return err
			}
			for _, invert := range []uint32{0, ^uint32(0)} {
				if err := writePattern(g.context, at, bytes, invert); err != nil {
					return err
				}
				if err := comparePattern(g.context, at, bytes, invert, &test); err != nil {
					return err
				}
				test.Passes++
			}
			if test.BadWords > 0 {
				return errMemoryDiffers
			}
			return g.context.Synchronize()
		})
		return test, err
	})
}

// pattern is the word that belongs to a place. Neighbours differ in about half of their bits, so that a wrong address
// line shows as a stuck bit does.
func pattern(i uint64, invert uint32) uint32 {
	x := uint32(i) * 0x9e3779b1 // only the low bits are wanted
	return x ^ x>>15 ^ invert
}

func writePattern(c *cuda.Context, at cuda.Address, bytes uint64, invert uint32) error {
	return chunks(bytes, func(first uint64, words []uint32) error {
		for i := range words {
			words[i] = pattern(first+uint64(i), invert)
		}
		return cuda.Write(c, at+cuda.Address(first*wordSize), words)
	})
}

// comparePattern reads a region and counts into the test what is not the pattern.
func comparePattern(c *cuda.Context, at cuda.Address, bytes uint64, invert uint32, test *wire.MemoryTest) error {
	return chunks(bytes, func(first uint64, words []uint32) error {
		if err := cuda.Read(c, words, at+cuda.Address(first*wordSize)); err != nil {
			return err
		}
		for i, got := range words {
			want := pattern(first+uint64(i), invert)
			if got == want {
				continue
			}
			if test.BadWords == 0 {
				test.FirstBad, test.Want, test.Got = (first+uint64(i))*wordSize, want, got
			}
			test.BadWords++
			test.BadBits += uint64(bits.OnesCount32(got ^ want))
		}
		return nil
	})
}

// chunks goes through a region with one buffer: the index of its first word, and the words.
func chunks(bytes uint64, do func(first uint64, words []uint32) error) error {
	total := bytes / wordSize
	buffer := make([]uint32, min(total, chunkWords))
	for first := uint64(0); first < total; first += chunkWords {
		if err := do(first, buffer[:min(total-first, chunkWords)]); err != nil {
			return err
		}
	}
	return nil
}
