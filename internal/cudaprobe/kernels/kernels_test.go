package kernels_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/cudaprobe/cuda"
	"runpodctl-worker/internal/cudaprobe/kernels"
)

func parse(t *testing.T, ptx string) *module {
	t.Helper()
	m, err := parsePTX(ptx)
	require.NoError(t, err)
	return m
}

func TestPTX_RunsOnOldDriversAndOldGPUs(t *testing.T) {
	m := parse(t, kernels.PTX())
	require.Equal(t, "4.2", m.version, "a newer one needs a newer driver")
	require.Equal(t, "sm_52", m.target, "a newer one needs a newer GPU")
}

func TestPTX_EntriesTakeWhatIsPassed(t *testing.T) {
	want := map[string][]int{
		kernels.Matmul:   {8, 8, 8, 4},
		kernels.MemFill:  {8, 8, 4},
		kernels.MemCheck: {8, 8, 4, 8},
	}
	m := parse(t, kernels.PTX())
	require.Len(t, m.entries, len(want))
	for name, sizes := range want {
		require.Contains(t, m.entries, name)
		require.Equal(t, sizes, m.entries[name].paramList, name)
	}
}

const edge = 3 * kernels.Tile

// runMatmul multiplies two matrices of whole numbers with the given PTX.
func runMatmul(t *testing.T, ptx string, n uint32) (a, b, c *memory, err error) {
	t.Helper()
	g := &gpu{}
	a, b, c = g.alloc(edge*edge), g.alloc(edge*edge), g.alloc(edge*edge)
	for i := range edge * edge {
		a.set(i, math.Float32bits(float32(i*7%16-8)))
		b.set(i, math.Float32bits(float32(i*5%16-8)))
	}
	err = g.launch(parse(t, ptx).entries[kernels.Matmul], kernels.MatmulShape(int(n)), a.at, b.at, c.at, n)
	return a, b, c, err
}

func TestMatmul_IsExact(t *testing.T) {
	a, b, c, err := runMatmul(t, kernels.PTX(), edge)
	require.NoError(t, err)
	value := func(m *memory, i, j int) float32 { return math.Float32frombits(m.get(i*edge + j)) }
	for i := range edge {
		for j := range edge {
			var want float32
			for k := range edge {
				want += value(a, i, k) * value(b, k, j)
			}
			require.Equal(t, int(want), int(value(c, i, j)), "element %d,%d", i, j)
		}
	}
}

// without removes one occurrence of a line.
func without(line string) string { return strings.Replace(kernels.PTX(), line, "", 1) }

func TestMachine_FindsFaults(t *testing.T) {
	for _, test := range []struct {
		name string
		ptx  string
		n    uint32
		want string
	}{
		{"matrix larger than its memory", kernels.PTX(), edge + kernels.Tile, "out of bounds"},
		{"no barrier before the tile is used", without("bar.sync \t0;"), edge, "read before it is written"},
		{"counter not set", without("mov.u32 \t%r26, 0;"), edge, "read before it is written"},
		{"half of the threads miss a barrier", strings.Replace(kernels.PTX(), "bar.sync \t0;",
			"setp.lt.u32 %p1, %r1, 8;\n@%p1 bra $L__BB0_3;\nbar.sync 0;", 1), edge, "diverge"},
		{"loop without an end", strings.Replace(kernels.PTX(), "$L__BB0_3:", "$L__BB0_3:\nbra $L__BB0_3;", 1), edge, "does not end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, _, err := runMatmul(t, test.ptx, test.n)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestMemory_FillAndCheck(t *testing.T) {
	const words, seed = 5000, 0x5eed
	shape := kernels.MemoryShape(words)
	narrow := cuda.Shape{Grid: [2]uint32{2, 1}, Block: shape.Block} // each thread strides
	for _, test := range []struct {
		name    string
		shape   cuda.Shape
		seed    uint32
		spoiled []int
		want    uint32
	}{
		{"as written", shape, seed, nil, 0},
		{"as written, few threads", narrow, seed, nil, 0},
		{"one bit", shape, seed, []int{4321}, 1},
		{"first, last and one between", narrow, seed, []int{0, 2500, words - 1}, 3},
		{"another pattern", shape, seed + 1, nil, words},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := parse(t, kernels.PTX())
			g := &gpu{}
			region, bad := g.alloc(words), g.alloc(1)
			bad.set(0, 0)
			require.NoError(t, g.launch(m.entries[kernels.MemFill], test.shape, region.at, uint64(words), uint32(seed)))
			for _, i := range test.spoiled {
				region.set(i, region.get(i)^1<<9)
			}
			require.NoError(t, g.launch(m.entries[kernels.MemCheck], test.shape, region.at, uint64(words), test.seed, bad.at))
			require.Equal(t, test.want, bad.get(0))
		})
	}
}

func TestMemory_NeighboursDiffer(t *testing.T) {
	const words = 256
	g := &gpu{}
	region := g.alloc(words)
	require.NoError(t, g.launch(parse(t, kernels.PTX()).entries[kernels.MemFill], kernels.MemoryShape(words),
		region.at, uint64(words), uint32(7)))
	seen := map[uint32]bool{}
	for i := range words {
		seen[region.get(i)] = true
	}
	require.Len(t, seen, words, "a wrong address line would not show")
}

func TestMemoryShape_ReachesEachWord(t *testing.T) {
	for _, test := range []struct {
		name   string
		words  uint64
		blocks uint32
	}{
		{"one word", 1, 1},
		{"one block", 256, 1},
		{"one word more", 257, 2},
		{"a GiB", 1 << 28, 4096},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, cuda.Shape{Grid: [2]uint32{test.blocks, 1}, Block: [2]uint32{256, 1}}, kernels.MemoryShape(test.words))
		})
	}
}
