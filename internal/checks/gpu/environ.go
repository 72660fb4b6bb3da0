package gpu

import (
	"slices"
	"strings"
)

// harmful are variables with which the driver hangs, dumps cores or cannot compile, whatever the GPU is like. A helper
// runs without them; the report names those that were set.
var harmful = []string{
	"CUDA_INJECTION64_PATH", "CUDA_DEVICE_WAITS_ON_EXCEPTION", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
	"CUDA_DISABLE_PTX_JIT", "NSIGHT_CUDA_DEBUGGER", "CUDA_PROFILE", "COMPUTE_PROFILE",
}

// given is what a helper's environment holds in any case.
var given = []string{
	"CUDA_DEVICE_ORDER=PCI_BUS_ID", // the order of NVML; CUDA's own is by speed
	"CUDA_CACHE_DISABLE=1",         // no files in the home folder
	"GOTRACEBACK=single",           // a crash in the driver is told with its signal, which "none" leaves out
}

const (
	visibleDevices = "CUDA_VISIBLE_DEVICES"
	libraryPath    = "LD_LIBRARY_PATH"
	bindNow        = "LD_BIND_NOW" // the NVML helper binds late, since an older driver lacks functions
)

// helperEnviron is the environment of a helper that may see the GPUs named, as given where none is named.
func helperEnviron(environ []string, visible, libraries string) []string {
	var env []string
	path := libraries
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case slices.Contains(harmful, name), name == bindNow, name == visibleDevices && visible != "":
			continue
		case slices.ContainsFunc(given, func(g string) bool { return strings.HasPrefix(g, name+"=") }):
			continue
		case name == libraryPath && libraries != "":
			path = strings.TrimSuffix(value, ":") + ":" + libraries
			continue
		}
		env = append(env, entry)
	}
	env = append(env, given...)
	if visible != "" {
		env = append(env, visibleDevices+"="+visible)
	}
	if libraries != "" {
		env = append(env, libraryPath+"="+strings.TrimPrefix(path, ":"))
	}
	return env
}

// removed lists the harmful variables that are set.
func removed(environ []string) []string {
	var names []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.Contains(harmful, name) {
			names = append(names, name)
		}
	}
	return names
}

// variable finds a variable as a program would: the last entry counts.
func variable(environ []string, name string) (string, bool) {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
