// Package kernels holds the device code of the GPU checks, and how it is launched.
package kernels

import (
	_ "embed"

	"runpodctl-worker/internal/cudaprobe/cuda"
)

// The entries of the module.
const (
	Matmul   = "matmul"   // (a, b, c address, n uint32): c = a·b, row by row, n×n
	MemFill  = "memfill"  // (p address, n uint64, seed uint32): n words of a pattern
	MemCheck = "memcheck" // (p address, n uint64, seed uint32, bad address): *bad += words that are not the pattern's
)

// Tile is the edge of a block of the matrix product; a matrix must be a multiple of it.
const Tile = 16

const (
	memoryThreads = 256
	memoryBlocks  = 4096 // each thread strides over the rest
)

//go:embed kernels.ptx
var ptx string

// PTX is the module as the driver's compiler takes it.
func PTX() string { return ptx }

// MatmulShape is the launch of an n×n product.
func MatmulShape(n int) cuda.Shape {
	blocks := uint32(n / Tile)
	return cuda.Shape{Grid: [2]uint32{blocks, blocks}, Block: [2]uint32{Tile, Tile}}
}

// MemoryShape is the launch over so many words.
func MemoryShape(words uint64) cuda.Shape {
	blocks := min((words+memoryThreads-1)/memoryThreads, memoryBlocks)
	return cuda.Shape{Grid: [2]uint32{uint32(blocks), 1}, Block: [2]uint32{memoryThreads, 1}}
}
