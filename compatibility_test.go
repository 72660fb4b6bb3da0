package runpodctlworker

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row of a table in docs/compatibility.md names its proof, and the proof exists.
func TestCompatibility_ProofsExist(t *testing.T) {
	page, err := os.ReadFile("docs/compatibility.md")
	require.NoError(t, err)
	exists := testNames(t)
	name, rows := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`"), 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(cells[len(cells)-1], " test ") {
			continue
		}
		rows++
		proofs := name.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(proofs) == 0 {
			require.Equal(t, " – ", cells[len(cells)-1], line)
		}
		for _, proof := range proofs {
			require.True(t, exists[proof[1]], "%s is not a test: %s", proof[1], line)
		}
	}
	require.Greater(t, rows, 60)
}

// testNames are the tests and fuzz targets of the whole tree.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	declaration, names := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`), map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || len(path) > 1 && path[0] == '.'):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range declaration.FindAllSubmatch(source, -1) {
			names[string(match[1])] = true
		}
		return err
	})
	require.NoError(t, err)
	return names
}
