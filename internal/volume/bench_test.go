package volume

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What it costs to find that nothing has changed in 2000 files.
func BenchmarkNothingChanged(b *testing.B) {
	r := newRig(b)
	for i := range 2000 {
		r.write(fmt.Sprint("models--x/blobs/", i%40, "/", i), strings.Repeat("x", i))
	}
	for i := range 8 {
		r.write(fmt.Sprint("large-", i), large("x"))
	}
	r.sync()
	for name, do := range map[string]func() Report{"sync": r.sync, "hydrate": r.hydrate} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.Zero(b, do().Files)
			}
		})
	}
}
