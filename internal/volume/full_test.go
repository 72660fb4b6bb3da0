package volume

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// VC-06: a volume that becomes full during a sync holds what it held before, and nothing of the new.
func TestFull(t *testing.T) {
	tests := []struct {
		name  string
		write func(*rig)
	}{
		{"a large file", func(r *rig) { r.write("large", strings.Repeat("n", 3<<20)) }},
		{"the archive", func(r *rig) {
			for i := range 20 {
				r.write("small-"+string(rune('a'+i)), strings.Repeat("n", 200<<10))
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.write("small", "before")
			r.write("large", large("before"))
			r.sync()
			before := image(t, r.dir())
			mirror := image(t, r.mirror())
			r.write("small", "after")
			tt.write(r)
			cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{r.dir()}, Limit: 2 << 20, Once: true})
			var last string
			for out.Scan() {
				last = out.Text()
			}
			require.NoError(t, cmd.Wait())
			require.Contains(t, last, "file too large")
			require.Equal(t, mirror, image(t, r.mirror()), "the mirror is what it was, without a temporary file")
			r.fresh()
			require.Equal(t, 2, r.hydrate().Files)
			require.Equal(t, before, image(t, r.dir()))
		})
	}
}

// VC-06: the same when it is only the manifest that finds no room.
func TestFull_Manifest(t *testing.T) {
	r := newRig(t)
	r.write("small", "before")
	for i := range 50 {
		require.NoError(t, os.Truncate(r.write(strings.Repeat("n", 200)+strconv.Itoa(i), ""), threshold))
	}
	r.sync()
	before, mirror := image(t, r.dir()), image(t, r.mirror())
	r.write("small", "after")
	cmd, out := startChild(t, childJob{Volume: r.volume, Dirs: []string{r.dir()}, Limit: 10 << 10, Once: true})
	require.True(t, out.Scan())
	require.Equal(t, "begin", out.Text())
	require.True(t, out.Scan())
	require.NoError(t, cmd.Wait())
	require.Contains(t, out.Text(), "write the manifest: ")
	require.Contains(t, out.Text(), "file too large")
	require.Equal(t, mirror, image(t, r.mirror()), "the mirror is what it was, without a temporary file")
	r.fresh()
	r.hydrate()
	require.Equal(t, before, image(t, r.dir()))
}

// Memory does not grow with the bytes of the files.
func TestMemory(t *testing.T) {
	r := newRig(t)
	for i := range 20 {
		path := r.write(filepath.Join("large", string(rune('a'+i))), "x")
		require.NoError(t, os.Truncate(path, 25<<20))
	}
	for i := range 200 {
		r.write(filepath.Join("small", string(rune('a'+i%26)), string(rune('a'+i/26))), strings.Repeat(string(rune('a'+rand.N(26))), 200<<10))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var peak atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		var m runtime.MemStats
		for ctx.Err() == nil {
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			<-time.After(time.Millisecond)
		}
	}()
	r.sync()
	r.fresh()
	report := r.hydrate()
	cancel()
	<-done
	require.Greater(t, report.Bytes, int64(500<<20))
	require.Less(t, peak.Load(), uint64(64<<20))
}
