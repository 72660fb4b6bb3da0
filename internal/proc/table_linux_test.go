package proc

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

const restOfStat = " 40 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987 0 0"

func TestParseStat(t *testing.T) {
	for _, tt := range []struct {
		name, stat string
		want       entry
		ok         bool
	}{
		{"running", "12 (sh) S 3 4" + restOfStat, entry{identity{12, 987}, 3, 4, false}, true},
		{"zombie", "12 (sh) Z 3 4" + restOfStat, entry{identity{12, 987}, 3, 4, true}, true},
		{"name with brackets", "12 (a) S 9 9 (b)) R 3 4" + restOfStat, entry{identity{12, 987}, 3, 4, false}, true},
		{"cut", "12 (sh) S 3 4 5", entry{}, false},
		{"no name", "12 S 3 4" + restOfStat, entry{}, false},
		{"no number", "12 (sh) S x 4" + restOfStat, entry{}, false},
		{"empty", "", entry{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, ok := parseStat([]byte(tt.stat))
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, e)
		})
	}
	t.Run("this process", func(t *testing.T) {
		e, ok := inspect(os.Getpid())
		require.True(t, ok)
		require.Equal(t, os.Getppid(), e.parent)
		require.Contains(t, processes(), e)
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add("sh", []byte("12 (sh) S 3 4"+restOfStat))
	f.Add(") S 1 1 (", []byte("12 (sh"))
	f.Fuzz(func(t *testing.T, name string, garbage []byte) {
		_, _ = parseStat(garbage) // of which it only must not panic
		e, ok := parseStat(fmt.Appendf(nil, "12 (%s) S 3 4%s", name, restOfStat))
		require.True(t, ok)
		require.Equal(t, entry{identity{12, 987}, 3, 4, false}, e, "whatever its name is")
	})
}
