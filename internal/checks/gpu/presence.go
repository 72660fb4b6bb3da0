package gpu

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"runpodctl-worker/internal/lazy"
)

// presence is what shows from outside that a GPU should be here, without asking a driver.
type presence struct {
	root      string
	devices   []string // device nodes of GPUs
	control   bool     // nvidiactl or dxg
	module    bool     // the kernel's module is loaded
	version   string   // of that module, where it says so
	libraries []string // paths of the driver's libraries, the first found of each
	extra     []string // folders of those that the loader would not find
	tool      string   // path of nvidia-smi
}

// proof tells whether the kernel knows an NVIDIA device. NVIDIA_VISIBLE_DEVICES proves nothing: it is set everywhere.
func (p presence) proof() bool { return len(p.devices) > 0 || p.control || p.module }

// hint tells whether the driver's files are here, which an image may carry on a machine without a GPU.
func (p presence) hint() bool { return len(p.libraries) > 0 || p.tool != "" }

// The names of what the container runtime puts into a container.
const (
	libCUDA = "libcuda.so.1"
	libNVML = "libnvidia-ml.so.1"
	tool    = "nvidia-smi"
)

// loaderFolders are where the loader of some distribution or image looks; the last ones are NVIDIA's own, which an image
// may have forgotten to tell its loader.
var loaderFolders = []string{
	"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib/aarch64-linux-gnu",
	"/usr/lib64", "/lib64", "/usr/lib", "/lib",
}

var nvidiaFolders = []string{"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"}

// look gathers what there is below root, which is empty but in tests. What the environment names is taken as it is.
func look(root string, environ []string) presence {
	p := presence{root: root}
	nodes, _ := filepath.Glob(root + "/dev/nvidia[0-9]*") // the pattern is well-formed
	for _, node := range nodes {
		if deviceNode().MatchString(filepath.Base(node)) {
			p.devices = append(p.devices, strings.TrimPrefix(node, root))
		}
	}
	path, _ := variable(environ, libraryPath)
	cache, _ := os.ReadFile(root + "/etc/ld.so.cache") //nolint:gosec // below the root
	for _, name := range []string{libCUDA, libNVML} {
		if file, known := library(root, name, filepath.SplitList(path), cache); file != "" {
			p.libraries = append(p.libraries, file)
			if !known {
				p.extra = append(p.extra, filepath.Dir(file))
			}
		}
	}
	p.control = exists(root + "/dev/nvidiactl")
	if exists(root + "/dev/dxg") { // any GPU of a Windows host
		p.control = p.control || len(p.libraries) > 0
	}
	p.module, p.version = kernelModule(root)
	path, _ = variable(environ, "PATH")
	p.tool = executable(tool, path)
	return p
}

var deviceNode = lazy.Regexp(`^nvidia[0-9]+$`)

// library finds a library, and tells whether the loader will find it too.
func library(root, name string, named []string, cache []byte) (file string, known bool) {
	for _, dir := range named {
		if dir != "" && exists(filepath.Join(dir, name)) {
			return filepath.Join(dir, name), true
		}
	}
	for _, dir := range loaderFolders {
		if exists(root + filepath.Join(dir, name)) {
			return filepath.Join(dir, name), true
		}
	}
	// The cache is a list of texts, each of which ends with a zero byte.
	for rest := cache; ; {
		i := bytes.Index(rest, []byte("/"+name+"\x00"))
		if i < 0 {
			break
		}
		file := string(rest[bytes.LastIndexByte(rest[:i], 0)+1:i]) + "/" + name
		if exists(root + file) {
			return file, true
		}
		rest = rest[i+1:]
	}
	for _, dir := range nvidiaFolders {
		if exists(root + filepath.Join(dir, name)) {
			return filepath.Join(dir, name), false
		}
	}
	return "", false
}

var moduleVersion = lazy.Regexp(`Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)`)

// kernelModule tells whether the kernel's module is loaded, and its version where it says so.
func kernelModule(root string) (loaded bool, version string) {
	text, err := os.ReadFile(root + "/proc/driver/nvidia/version") //nolint:gosec // below the root
	if err != nil {
		return false, ""
	}
	if m := moduleVersion().FindSubmatch(text); m != nil {
		version = string(m[1])
	}
	return true, version
}

// executable finds a program in the folders of a PATH that need not be ours.
func executable(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
