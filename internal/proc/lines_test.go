package proc

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	for _, tt := range []struct {
		name   string
		writes []string
		want   []string
	}{
		{"lines", []string{"a\nb\n"}, []string{"a", "b"}},
		{"in pieces, the last without its end", []string{"a", "b", "\nc", "d"}, []string{"ab", "cd"}},
		{"an empty line", []string{"a\n\nb\n"}, []string{"a", "", "b"}},
		{"CRLF, cut between the two", []string{"a\r\nb\r", "\nc\n"}, []string{"a", "b", "c"}},
		{"a progress bar", []string{"1%\r50%", "\r99%\r", "\n"}, []string{"99%"}},
		{"a progress bar that has no end", []string{"1%\r", "50%\r"}, []string{"50%"}},
		{"too long, within a word", []string{"0123 567", "89ab\nx\n"}, []string{"0123  (7 cut)", "x"}},
		{"too long, in pieces", []string{"01234567", "89abcdef", "gh\nx\n"}, []string{"0123456789 (8 cut)", "x"}},
		{"too long, then overwritten", []string{"0123456789abc\rshort\n"}, []string{"short"}},
		{"nothing", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			lines := NewLines(10, func(text []byte, cut int) {
				line := string(text)
				if cut > 0 {
					line += fmt.Sprintf(" (%d cut)", cut)
				}
				got = append(got, line)
			})
			for _, w := range tt.writes {
				n, err := lines.Write([]byte(w))
				require.NoError(t, err)
				require.Equal(t, len(w), n)
			}
			lines.Flush()
			lines.Flush()
			require.Equal(t, tt.want, got)
		})
	}
}

func TestLines_ShowsAProgressBarNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		lines := NewLines(100, func(text []byte, _ int) { got = append(got, string(text)) })
		lines.Every = 5 * time.Second
		for i := range 100 {
			_, err := fmt.Fprintf(lines, "\r%d%%", i)
			require.NoError(t, err)
			time.Sleep(time.Second / 10)
		}
		lines.Flush()
		require.Equal(t, []string{"49%", "99%"}, got)
	})
}

func FuzzLines(f *testing.F) {
	f.Add("a\rb\nc\r\n", uint8(3))
	f.Fuzz(func(t *testing.T, text string, at uint8) {
		collect := func(parts ...string) (all []string) {
			lines := NewLines(8, func(text []byte, cut int) { all = append(all, fmt.Sprint(string(text), cut)) })
			for _, p := range parts {
				_, _ = lines.Write([]byte(p))
			}
			lines.Flush()
			return all
		}
		cut := min(int(at), len(text))
		require.Equal(t, collect(text), collect(text[:cut], text[cut:]), "however it arrives")
		for _, line := range collect(text) {
			require.NotContains(t, strings.TrimRight(line, "0123456789"), "\n")
		}
	})
}
