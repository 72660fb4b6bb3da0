// Package test drives the built binary from outside, as its users do: with the official clients, with
// the official worker, and as a worker of a scripted platform.
package test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var buildDir string

const parallel = 4

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "runpodctl-worker-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	buildDir = dir
	// These tests wait for processes most of the time, so a small machine can run more of them than it has cores.
	flag.Parse()
	if runtime.GOMAXPROCS(0) < parallel {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// What the build under test is stamped with.
const (
	testVersion = "9.8.7-test"
	testCommit  = "abcdef0"
)

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "runpodctl-worker")
	stamp := "-X runpodctl-worker/internal/cli.version=" + testVersion + " -X runpodctl-worker/internal/cli.commit=" + testCommit
	cmd := exec.Command("go", "build", "-ldflags", stamp, "-o", path, "../cmd/runpodctl-worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return path, err
})

// binary is the command under test, built once for all tests.
func binary(t *testing.T) string {
	t.Helper()
	path, err := build()
	require.NoError(t, err)
	return path
}

// python is an interpreter that has the official packages.
func python(t *testing.T) string {
	t.Helper()
	path := os.Getenv("RUNPODCTL_TEST_PYTHON")
	if path == "" {
		path = abs(t, "../.venv/bin/python")
	}
	if err := exec.Command(path, "-c", "import importlib.metadata as m; m.version('runpod'), m.version('openai')").Run(); err != nil {
		missing(t, "no Python with the official packages at %s (make test installs one): %v", path, err)
	}
	return path
}

// node is the interpreter for the JavaScript clients, which npm ci puts beside their scripts.
func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		missing(t, "no node in PATH")
	}
	for _, client := range []string{"runpod-sdk", "openai"} {
		if _, err := os.Stat("sdk/js/node_modules/" + client); err != nil {
			missing(t, "no %s (make test installs it): %v", client, err)
		}
	}
	return path
}

// missing skips a test whose tool is not installed, but never where everything must be.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}

// handler is the path of one of the handler files of these tests.
func handler(t *testing.T, name string) string {
	t.Helper()
	return abs(t, filepath.Join("handlers", name))
}
