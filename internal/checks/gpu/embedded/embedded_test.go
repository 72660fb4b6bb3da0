package embedded

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen_WhereThereIsNone(t *testing.T) {
	_, err := Open("other")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "the other helper is not in this binary: file does not exist")
}
