package cudaprobe

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const testSize = 32

func product(a, b matrix, n int) matrix {
	c := make(matrix, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				c[i*n+j] += a[i*n+k] * b[k*n+j]
			}
		}
	}
	return c
}

func TestVerify_EachElementCounts(t *testing.T) {
	a, b := testMatrices(testSize)
	c := product(a, b, testSize)
	require.Nil(t, verify(a, b, c, testSize))
	for i := range c {
		wrong := slices.Clone(c)
		wrong[i]++
		found := verify(a, b, wrong, testSize)
		require.NotNil(t, found, "element %d", i)
		require.Equal(t, [2]int{i / testSize, i % testSize}, [2]int{found.row, found.col})
		require.Equal(t, int(c[i]), int(found.want))
	}
}

func TestVerify_WhatNoProductHolds(t *testing.T) {
	a, b := testMatrices(testSize)
	const at = 5*testSize + 7
	for _, test := range []struct {
		name  string
		value float32
		want  string
	}{
		{"not a number", float32(math.NaN()), "NaN"},
		{"infinite", float32(math.Inf(-1)), "-Inf"},
		{"a fraction", 0.5, "0.5"},
		{"too large", 1e20, "1e+20"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := product(a, b, testSize)
			c[at] = test.value
			found := verify(a, b, c, testSize)
			require.NotNil(t, found)
			require.Equal(t, [2]int{5, 7}, [2]int{found.row, found.col})
			require.Equal(t, test.want, found.got)
		})
	}
}

func TestVerify_NothingComputed(t *testing.T) {
	a, b := testMatrices(testSize)
	require.NotNil(t, verify(a, b, make(matrix, testSize*testSize), testSize))
}

func TestTestMatrices_AreSmallWholeNumbers(t *testing.T) {
	a, b := testMatrices(testSize)
	seen := map[float32]bool{}
	for _, v := range slices.Concat(a, b) {
		require.True(t, v >= -8 && v <= 7 && v == float32(int(v)), "%v", v)
		seen[v] = true
	}
	require.Len(t, seen, 16)
}

func TestPattern_NeighboursDiffer(t *testing.T) {
	seen := map[uint32]bool{}
	for i := range uint64(1 << 16) {
		seen[pattern(i, 0)] = true
		require.Equal(t, ^pattern(i, 0), pattern(i, ^uint32(0)))
	}
	require.Len(t, seen, 1<<16)
}

func TestChunks_CoverARegion(t *testing.T) {
	for _, test := range []struct {
		name  string
		words uint64
		want  []int
	}{
		{"one word", 1, []int{1}},
		{"one chunk", chunkWords, []int{chunkWords}},
		{"a word more", chunkWords + 1, []int{chunkWords, 1}},
		{"two and a half", chunkWords * 5 / 2, []int{chunkWords, chunkWords, chunkWords / 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var sizes []int
			next := uint64(0)
			require.NoError(t, chunks(test.words*wordSize, func(first uint64, words []uint32) error {
				require.Equal(t, next, first)
				next += uint64(len(words))
				sizes = append(sizes, len(words))
				return nil
			}))
			require.Equal(t, test.want, sizes)
		})
	}
}
