package declared

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocs_TheExampleLoads(t *testing.T) {
	page, err := os.ReadFile("../../../docs/checks.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, example)
	list, err := Load(t.Context(), write(t, string(example[1])), Deps{})
	require.NoError(t, err)
	require.Len(t, list, 6, "one of each kind")
	require.Equal(t, "model_files", list[0].ID)
}
