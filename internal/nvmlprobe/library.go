//go:build linux && cgo

package nvmlprobe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// errNoLibrary is the answer where there is no NVML at all.
var errNoLibrary = errors.New("there is no " + libraryName)

// openLibrary loads NVML by its name, or from where it usually lies. Other errors than errNoLibrary have the loader's
// words, which go-nvml would keep to itself.
func openLibrary() (*library, error) {
	failure := errNoLibrary
	for _, name := range candidates() {
		own := dl.New(name, dl.RTLD_LAZY|dl.RTLD_GLOBAL)
		err := own.Open()
		if err == nil {
			return checked(&library{Interface: nvml.New(nvml.WithLibraryPath(name)), name: name, own: own})
		}
		if !unknown(err) {
			failure = err
		}
	}
	return nil, failure
}

func candidates() []string {
	names := []string{libraryName}
	for _, dir := range libraryDirs {
		path := filepath.Join(dir, libraryName)
		if _, err := os.Stat(path); err == nil {
			names = append(names, path)
		}
	}
	return names
}

// unknown tells whether the loader did not find NVML itself; something that NVML needs may be missing, too.
func unknown(err error) bool {
	return strings.HasPrefix(err.Error(), libraryName+": ") && strings.HasSuffix(err.Error(), "No such file or directory")
}

func checked(l *library) (*library, error) {
	for _, symbol := range coreSymbols {
		if !l.has(symbol) {
			return nil, fmt.Errorf("%s is not NVML: it has no %s", l.name, symbol)
		}
	}
	return l, nil
}

// has tells whether the driver has a function.
func (l *library) has(symbol string) bool { return l.own.Lookup(symbol) == nil }
