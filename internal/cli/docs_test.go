package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

// The examples of the page work, and every flag that it names is one.
func TestEmulatorPage(t *testing.T) {
	text := page(t, "emulator.md")
	_, rules, _ := strings.Cut(text, "```yaml\n")
	rules, _, _ = strings.Cut(rules, "```")
	path := filepath.Join(t.TempDir(), "faults.yaml")
	require.NoError(t, os.WriteFile(path, []byte(rules), 0o600))
	plan, err := readFaults(path)
	require.NoError(t, err)
	require.Len(t, plan.Rules, 3)

	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| `(\\w+)`, `(\\w+)` \\|").FindAllStringSubmatch(text, -1) {
		var d emulator.Disputed
		require.NoError(t, d.Set(row[1]+"="+row[2]))
		require.Zero(t, d, "%s is the default", row[2])
		require.NoError(t, d.Set(row[1]+"="+row[3]))
		require.NotZero(t, d)
	}
}

// No page names a flag that no command has.
func TestPages_NameFlagsThatExist(t *testing.T) {
	known := map[string]bool{"help": true, "version": true}
	for _, cmd := range newApp(withFlags).Commands {
		for _, flag := range cmd.Flags {
			for _, name := range flag.Names() {
				known[name] = true
			}
		}
	}
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, flag := range regexp.MustCompile("`--([a-z_-]+)").FindAllStringSubmatch(string(text), -1) {
			require.True(t, known[flag[1]], "%s names --%s", file, flag[1])
		}
	}
}

// No page names a test that is not there.
func TestPages_NameTestsThatExist(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			known[found[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1) {
			require.True(t, known[name[1]], "%s names %s", file, name[1])
		}
	}
}

// What README puts into an image is one file, so the GPU helpers have to be inside it.
func TestReadme_ImageHasTheHelpers(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, recipe, _ := strings.Cut(string(text), "```dockerfile\n")
	recipe, _, _ = strings.Cut(recipe, "```")
	require.Contains(t, recipe, "make -C /src release-build\n")
	require.Contains(t, recipe, "/src/bin/runpodctl-worker /usr/local/bin/")
}

// No page links to a file that is not there.
func TestPages_LinkToFilesThatExist(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^):#]+)`).FindAllStringSubmatch(string(text), -1) {
			require.FileExists(t, filepath.Join(filepath.Dir(file), link[1]), "%s links to %s", file, link[1])
		}
	}
}
