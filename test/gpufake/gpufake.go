// Package gpufake builds driver libraries that stand in for a machine with GPUs, for tests on machines without one.
// They are strict where the real ones are, and fail where a test says so: fake.h tells how.
package gpufake

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Variant is a library to build.
type Variant struct {
	source string
	soname string
	define string
}

// The libraries that there are.
var (
	CUDA     = Variant{source: "fakecuda.c", soname: "libcuda.so.1"}
	CUDAStub = Variant{source: "fakecuda.c", soname: "libcuda.so.1", define: "STUB"} // as in a toolkit's stubs folder
	CUDAOld  = Variant{source: "fakecuda.c", soname: "libcuda.so.1", define: "OLD"}  // without the newer functions
	NVML     = Variant{source: "fakenvml.c", soname: "libnvidia-ml.so.1"}
	NVMLOld  = Variant{source: "fakenvml.c", soname: "libnvidia-ml.so.1", define: "OLD"}
	NVMLBare = Variant{source: "fakenvml.c", soname: "libnvidia-ml.so.1", define: "BARE"} // nothing but what every driver has
)

// TraceVar names the file to which each call is written as "func gpu".
const TraceVar = "FAKE_GPU_TRACE"

// Libs are built libraries.
type Libs struct{ dirs []string }

//go:embed fake*
var sources embed.FS

// Build compiles libraries, unless an earlier test has: their folder is named by what they are made of. Without gcc
// the test is skipped, which under CI is a failure.
func Build(t testing.TB, variants ...Variant) Libs {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the GPU drivers that are faked are those of Linux")
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("gcc is missing: install it, the fake GPUs are written in C")
		}
		t.Skip("no gcc to build the fake GPUs with")
	}
	var libs Libs
	for _, v := range variants {
		libs.dirs = append(libs.dirs, v.build(t, gcc))
	}
	return libs
}

func (v Variant) build(t testing.TB, gcc string) string {
	t.Helper()
	hash := sha256.New()
	files, err := sources.ReadDir(".")
	require.NoError(t, err)
	for _, f := range files {
		text, err := sources.ReadFile(f.Name())
		require.NoError(t, err)
		hash.Write(text)
	}
	fmt.Fprint(hash, gcc, v)
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("gpufake-%d-%x", os.Getuid(), hash.Sum(nil)[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	work := t.TempDir()
	require.NoError(t, os.CopyFS(work, sources))
	out := filepath.Join(work, "out")
	require.NoError(t, os.Mkdir(out, 0o700))
	args := []string{
		"-shared", "-fPIC", "-fvisibility=hidden", "-O3", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread",
		"-Wl,-soname," + v.soname, "-o", filepath.Join(out, v.soname),
	}
	if v.define != "" {
		args = append(args, "-D"+v.define)
	}
	cmd := exec.Command(gcc, append(args, filepath.Join(work, v.source))...)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	if err := os.Rename(out, dir); err != nil {
		require.DirExists(t, dir, "another test has built it meanwhile, or: %v", err)
	}
	return dir
}

// Env is what makes a program see so many fake GPUs, which behave as the rules and values say.
func (l Libs) Env(rules, values string, gpus int) []string {
	return []string{
		"LD_LIBRARY_PATH=" + strings.Join(l.dirs, ":"),
		"FAKE_GPU_COUNT=" + strconv.Itoa(gpus),
		"FAKE_GPU_RULES=" + rules,
		"FAKE_GPU_VALUES=" + values,
	}
}

// UUID is the UUID of a GPU.
func UUID(gpu int) string { return fmt.Sprintf("GPU-100000%02x-face-4000-8000-000000000000", gpu) }

// SliceUUID is the UUID of a MIG device of a GPU.
func SliceUUID(gpu, slice int) string {
	return fmt.Sprintf("MIG-200000%02x-face-4000-8000-0000000000%02x", gpu, slice)
}
