package gpu

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/lazy"
)

// toolkit is the CUDA that an image was built for. It says nothing about the driver.
type toolkit struct {
	version checks.Version
	source  string
}

var (
	cudaFolder  = lazy.Regexp(`cuda-(\d{1,4}\.\d{1,4})$`)
	cudaRuntime = lazy.Regexp(`libcudart\.so\.(\d{1,4}\.\d{1,4})`)
	nvccRelease = lazy.Regexp(`release (\d{1,4}\.\d{1,4})`)
)

// findToolkit looks where images say what they were built for: the first that answers counts.
func (d *Driver) findToolkit(ctx context.Context) toolkit {
	if v, err := checks.ParseVersion(d.config.Get("CUDA_VERSION")); err == nil {
		return toolkit{v, "CUDA_VERSION"}
	}
	root := d.options.Root
	if t := toolkitFile(root + "/usr/local/cuda/version.json"); !t.version.IsZero() {
		return t
	}
	for _, link := range []string{"/usr/local/cuda", "/etc/alternatives/cuda"} { // Debian's packages link twice
		target, err := os.Readlink(root + link)
		if err != nil {
			continue
		}
		if t := versionIn(cudaFolder(), target, link); !t.version.IsZero() {
			return t
		}
	}
	for _, pattern := range []string{
		"/usr/local/cuda/lib64/libcudart.so.*", "/usr/local/cuda/targets/*/lib/libcudart.so.*", "/usr/lib/*-linux-gnu/libcudart.so.*",
	} {
		files, _ := filepath.Glob(root + pattern) // the patterns are well-formed
		for _, file := range files {
			if t := versionIn(cudaRuntime(), file, file[len(root):]); !t.version.IsZero() {
				return t
			}
		}
	}
	path, _ := variable(d.environ, "PATH")
	if nvcc := executable("nvcc", path); nvcc != "" {
		text, err := runTool(ctx, nvccTime, d.environ, nvcc, "--version")
		if err == nil {
			return versionIn(nvccRelease(), text, "nvcc")
		}
	}
	return toolkit{}
}

func toolkitFile(path string) toolkit {
	text, err := os.ReadFile(path) //nolint:gosec // below the root
	if err != nil {
		return toolkit{}
	}
	var file struct {
		CUDA struct {
			Version string `json:"version"`
		} `json:"cuda"`
	}
	if json.Unmarshal(text, &file) != nil {
		return toolkit{}
	}
	v, err := checks.ParseVersion(file.CUDA.Version)
	if err != nil {
		return toolkit{}
	}
	return toolkit{v, "version.json"}
}

func versionIn(pattern *regexp.Regexp, text, source string) toolkit {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return toolkit{}
	}
	v, err := checks.ParseVersion(m[1])
	if err != nil {
		return toolkit{}
	}
	return toolkit{v, source}
}
