// Package host holds the checks of the machine beside its GPUs: memory, disk, network, and what programs trip over.
package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// gib is a GB as the SDK counts it.
const gib = 1 << 30

// Where the platform mounts a network volume.
const (
	serverlessVolume = "/runpod-volume"
	podVolume        = "/workspace"
)

var volumePaths = []string{serverlessVolume, podVolume}

// box is the machine as its files show it. Tests put a folder of their own in place of the root.
type box struct{ root string }

var here = box{"/"}

func (b box) at(path string) string { return filepath.Join(b.root, path) }

// read is the text of a file; false where there is none.
func (b box) read(path string) (string, bool, error) {
	text, err := os.ReadFile(b.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return string(text), err == nil, err
}

func inGB(bytes uint64) float64 { return float64(bytes) / gib }

// amount is a size for people: "184.9 GB".
func amount(bytes uint64) string {
	if bytes < gib {
		return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", inGB(bytes))
}

// short is a number without needless zeros: "4", "0.5".
func short(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// pythonFloat is a number as Python prints it, for the SDK's sentences: "4.0".
func pythonFloat(v float64) string {
	s := short(v)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
