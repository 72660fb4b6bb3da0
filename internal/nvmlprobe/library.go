//go:build linux && cgo

package nvmlprobe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const libraryName = "libnvidia-ml.so.1"

// libraryDirs are looked through when the loader does not know the library: where container runtimes put it whose
// loader cache could not be written.
var libraryDirs = []string{
	"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/usr/lib64", "/usr/lib/wsl/lib",
}

// coreSymbols are as old as any driver in use, and go-nvml calls them before one could look. Whatever else is called
// is looked up first: calling what is not there ends the process.
var coreSymbols = []string{
	"nvmlInit_v2", "nvmlErrorString", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount_v2",
	"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName", "nvmlDeviceGetUUID",
}

// library is NVML, loaded.
type library struct {
	nvml.Interface
	name string
	own  *dl.DynamicLibrary
}

// openLibrary loads NVML by its name, or from where it usually lies. The error has the loader's words, which go-nvml
// would keep to itself.
func openLibrary() (*library, error) {
	names := []string{libraryName}
	for _, dir := range libraryDirs {
		path := filepath.Join(dir, libraryName)
		if _, err := os.Stat(path); err == nil {
			names = append(names, path)
		}
	}
	var failures []error
	for _, name := range names {
		own := dl.New(name, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
		if err := own.Open(); err != nil {
			failures = append(failures, err)
			continue
		}
		lib := &library{Interface: nvml.New(nvml.WithLibraryPath(name)), name: name, own: own}
		for _, symbol := range coreSymbols {
			if !lib.has(symbol) {
				return nil, fmt.Errorf("%s is not NVML: it has no %s", name, symbol)
			}
		}
		return lib, nil
	}
	return nil, errors.Join(failures...)
}

// has tells whether the driver has a function.
func (l *library) has(symbol string) bool { return l.own.Lookup(symbol) == nil }
