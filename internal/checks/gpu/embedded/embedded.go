// Package embedded holds the GPU helper programs, in releases: they are built first, compressed into a folder of bin
// for each architecture, and put into the binary by the build tag embedprobes. Without the tag there are none.
package embedded

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"runtime"
)

// Open unpacks a helper: "cuda" or "nvml". Where this binary carries none, the error is fs.ErrNotExist.
func Open(name string) (io.ReadCloser, error) {
	packed, err := programs.Open("bin/" + runtime.GOARCH + "/" + name + "-probe.gz")
	if err != nil {
		return nil, fmt.Errorf("the %s helper is not in this binary: %w", name, fs.ErrNotExist)
	}
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack the %s helper: %w", name, err)
	}
	return unpacked, nil
}
