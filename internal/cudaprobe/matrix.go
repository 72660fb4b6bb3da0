package cudaprobe

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// matrix is square, row by row. Its values are small whole numbers, so that each partial sum of a product is one too,
// and the product is exact in whatever order it is summed.
type matrix = []float32

const (
	least   = -8
	spread  = 16
	largest = 8 * 8 // of a product of two values
)

// testMatrices are always the same.
func testMatrices(n int) (a, b matrix) {
	random := rand.New(rand.NewPCG(1, 2)) // test data
	a, b = make(matrix, n*n), make(matrix, n*n)
	for i := range a {
		a[i], b[i] = float32(random.IntN(spread)+least), float32(random.IntN(spread)+least)
	}
	return a, b
}

// element is a wrong element of a product.
type element struct {
	row, col int
	want     float64
	got      string
}

// verify finds the first wrong element of c = a·b, nil if there is none. It is Freivalds' check: for a random x the
// product is right if c·x is a·(b·x), which costs three products of a matrix and a vector. In integers no error hides
// in a tolerance, and since no part of x is 0, one wrong element in a row is always seen.
func verify(a, b, c matrix, n int) *element {
	random := rand.New(rand.NewPCG(3, 4)) // no adversary here
	x := make([]int64, n)
	for i := range x {
		x[i] = 1 + int64(random.Int32())
	}
	want := times(a, times(b, x, n), n)
	for i := range n {
		row := c[i*n : (i+1)*n]
		if whole(row, n) && dot(row, x) == want[i] {
			continue
		}
		if wrong := firstWrong(a, b, row, i, n); wrong != nil {
			return wrong
		}
	}
	return nil
}

// whole tells whether a row holds nothing but numbers that the product could hold.
func whole(row []float32, n int) bool {
	for _, v := range row {
		// NaN is not equal to itself.
		if f := float64(v); f != math.Trunc(f) || math.Abs(f) > float64(largest*n) {
			return false
		}
	}
	return true
}

// firstWrong computes one row the long way.
func firstWrong(a, b matrix, row []float32, i, n int) *element {
	want := make([]int64, n)
	for k := range n {
		v := int64(a[i*n+k])
		for j := range n {
			want[j] += v * int64(b[k*n+j])
		}
	}
	for j, got := range row {
		if float64(got) != float64(want[j]) {
			return &element{i, j, float64(want[j]), strconv.FormatFloat(float64(got), 'g', -1, 32)}
		}
	}
	return nil
}

func times(m matrix, x []int64, n int) []int64 {
	y := make([]int64, n)
	for i := range y {
		y[i] = dot(m[i*n:(i+1)*n], x)
	}
	return y
}

func dot(row []float32, x []int64) int64 {
	var sum int64
	for j, v := range row {
		sum += int64(v) * x[j]
	}
	return sum
}
