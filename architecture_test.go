package runpodctlworker

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "runpodctl-worker/"

// rooms says which rooms of the house each one may know. A room that is not listed has no business to exist.
var rooms = map[string][]string{
	"cmd/runpodctl-worker":            {"internal/cli"},
	"cmd/runpodctl-worker-cuda-probe": {"internal/cudaprobe"},
	"cmd/runpodctl-worker-nvml-probe": {"internal/nvmlprobe"},
	"internal/cli":                    {"internal"},
	"internal/config":                 {"internal/protocol"},
	"internal/lazy":                   {},
	"internal/joblog":                 {},
	"internal/mistake":                {},
	"internal/redact":                 {"internal/lazy"},
	"internal/metrics":                {"internal/protocol"},
	"internal/protocol":               {"internal/mistake", "internal/protocol", "internal/redact"},
	"internal/proc":                   {"internal/mistake"},
	"internal/worker":                 {"internal/lazy", "internal/mistake", "internal/protocol", "internal/worker"},
	"internal/journal":                {"internal/protocol"},
	"internal/volume":                 {},
	"internal/offload":                {"internal/config", "internal/protocol", "internal/redact"},
	"internal/ready":                  {"internal/mistake", "internal/protocol", "internal/proc"},
	"internal/realtime":               {"internal/mistake", "internal/protocol"},
	"internal/handler":                {"internal/config", "internal/lazy", "internal/mistake", "internal/protocol", "internal/proc", "internal/redact", "internal/handler"},
	"internal/emulator":               {"internal/lazy", "internal/protocol", "internal/emulator"},
	"internal/checks":                 {"internal/lazy", "internal/config", "internal/checks", "internal/proc"},
	"internal/cudaprobe":              {"internal/checks/gpu/wire", "internal/cudaprobe"},
	"internal/nvmlprobe":              {"internal/checks/gpu/wire", "internal/nvmlprobe"},
	"internal/tui":                    {"internal/checks", "internal/tui"},
	"test":                            {"internal", "test"},
}

// owners says which rooms alone may use a library.
var owners = map[string][]string{
	"github.com/labstack/echo/":     {"internal/emulator"},
	"github.com/urfave/cli/":        {"internal/cli"},
	"github.com/stretchr/testify/":  {"test"},
	"go.yaml.in/yaml/":              {"internal/cli", "internal/checks"},
	"github.com/cenkalti/backoff/":  {"internal/worker", "internal/checks", "internal/offload"},
	"github.com/aws/":               {"internal/offload"},
	"github.com/charmbracelet/":     {"internal/tui"},
	"github.com/ebitengine/purego/": {"internal/cudaprobe"},
	"github.com/NVIDIA/go-nvml/":    {"internal/nvmlprobe"},
	"github.com/shirou/gopsutil/":   {"internal/checks"},
	"github.com/creack/pty/":        {"test"},
	"github.com/prometheus/":        {"internal/metrics"},
}

// stdlibOnly lists the rooms that use nothing but the standard library and golang.org/x/sys.
var stdlibOnly = []string{"internal/protocol", "internal/proc", "internal/ready", "internal/realtime", "internal/journal", "internal/redact", "internal/joblog", "internal/lazy", "internal/mistake", "internal/volume"}

func TestArchitecture_RoomsKeepToTheirDoors(t *testing.T) {
	for _, pkg := range packages(t) {
		path := strings.TrimPrefix(pkg.ImportPath, module)
		room := roomOf(path)
		if path == strings.TrimSuffix(module, "/") {
			continue // the folder of this test
		}
		require.NotEmpty(t, room, "%s belongs to no room of the table", path)
		for _, imp := range pkg.Imports {
			if own, ok := strings.CutPrefix(imp, module); ok {
				require.True(t, within(own, rooms[room]), "%s must not import %s", path, own)
				continue
			}
			for library, owner := range owners {
				if strings.HasPrefix(imp+"/", library) {
					require.True(t, within(path, owner), "%s must not import %s, which belongs to %s", path, imp, owner)
				}
			}
			if within(path, stdlibOnly) && strings.Contains(imp, ".") {
				require.True(t, strings.HasPrefix(imp, "golang.org/x/sys/"), "%s must not import %s", path, imp)
			}
		}
	}
}

func TestArchitecture_EveryRoomIsOnTheMap(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	for room := range rooms {
		if strings.HasPrefix(room, "internal/") {
			require.Contains(t, string(page), "\n"+room, "docs/architecture.md lacks a room")
		}
	}
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", "./...").Output()
	require.NoError(t, err)
	var all []goPackage
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

func roomOf(path string) string {
	for room := range rooms {
		if within(path, []string{room}) {
			return room
		}
	}
	return ""
}

func within(path string, folders []string) bool {
	for _, folder := range folders {
		if path == folder || strings.HasPrefix(path, folder+"/") {
			return true
		}
	}
	return false
}
