package journal

import (
	"fmt"
	"strings"
	"testing"
)

// What a journal costs per job: it is taken, has a result, and is settled.
func BenchmarkJob(b *testing.B) {
	for name, size := range map[string]int{"200B": 200, "8KB": 8 << 10, "8MB": 8 << 20} {
		b.Run(name, func(b *testing.B) {
			j := open(b, b.TempDir())
			outcome := output(`"` + strings.Repeat("x", size) + `"`)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				job := fmt.Sprintf("d8f6b7c4-2f0e-4c5e-9d1a-%d-u1", i)
				j.Taken(job)
				j.Result(job, outcome)
				j.Settled(job)
			}
		})
	}
}
