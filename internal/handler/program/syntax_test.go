package program_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The shim must load in every Python that images carry, whichever one runs these tests.
func TestShimIsOldPython(t *testing.T) {
	const script = `
import ast, pathlib
files = sorted(pathlib.Path(".").glob("shim/**/*.py"))
for file in files: ast.parse(file.read_text(), str(file), feature_version=(3, 9))
print(len(files) > 10)
`
	require.Equal(t, "True\n", runPython(t, "python3", "", script))
}
