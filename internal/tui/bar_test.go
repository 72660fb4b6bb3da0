package tui

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func TestBar(t *testing.T) {
	tests := []struct {
		name  string
		share Share
		after time.Duration
		width int
		color bool
	}{
		{"at the start", Share{"hydrating", 0, 8, 0, 512 << 20}, 0, 100, false},
		{"half way", Share{"hydrating", 4, 8, 256 << 20, 512 << 20}, 2 * time.Second, 100, false},
		{"in colour", Share{"hydrating", 4, 8, 256 << 20, 512 << 20}, 2 * time.Second, 100, true},
		{"done", Share{"syncing", 8, 8, 512 << 20, 512 << 20}, 4 * time.Second, 100, false},
		{"more than there was", Share{"syncing", 9, 8, 600 << 20, 512 << 20}, 4 * time.Second, 100, false},
		{"only files are counted", Share{"verifying", 3, 4, 0, 0}, time.Second, 100, false},
		{"nothing to do", Share{"verifying", 0, 0, 0, 0}, time.Second, 100, false},
		{"a narrow terminal", Share{"hydrating", 4, 8, 256 << 20, 512 << 20}, 2 * time.Second, 40, false},
		{"a width that is not known", Share{"hydrating", 4, 8, 256 << 20, 512 << 20}, 2 * time.Second, 0, false},
	}
	var all strings.Builder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				bar := NewBar(&out, func() int { return tt.width }, tt.color)
				bar.Show(Share{What: tt.share.What})
				time.Sleep(max(tt.after, redrawEvery))
				out.Reset()
				bar.Show(tt.share)
				line := strings.TrimPrefix(out.String(), eraseLine)
				if tt.width > 0 {
					require.Less(t, ansi.StringWidth(line), tt.width)
				}
				all.WriteString(strings.ReplaceAll(line, "\x1b", "^[") + "\n")
			})
		})
	}
	requireGolden(t, "bar", all.String())
}

// However often it is told, the line is not drawn more than ten times a second; a new piece of work shows at once.
func TestBar_DrawsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		bar := NewBar(&out, func() int { return 80 }, false)
		for range 1000 {
			bar.Show(Share{What: "hydrating"})
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, 10, strings.Count(out.String(), eraseLine))
		bar.Show(Share{What: "verifying"})
		require.Equal(t, 11, strings.Count(out.String(), eraseLine))
	})
}

// What is written meanwhile stands on lines of its own, and nothing is left of the bar at the end.
func TestBar_MakesRoom(t *testing.T) {
	var out bytes.Buffer
	bar := NewBar(&out, func() int { return 80 }, false)
	_, err := bar.Write([]byte("first\n"))
	require.NoError(t, err)
	bar.Show(Share{What: "hydrating"})
	drawn := out.String()
	_, err = bar.Write([]byte("second\n"))
	require.NoError(t, err)
	bar.Close()
	require.True(t, strings.HasPrefix(drawn, "first\n"+eraseLine+"hydrating"))
	require.Equal(t, drawn+eraseLine+"second\n", out.String(), "a line that is empty is not erased again")
	bar.Show(Share{What: "hydrating"})
	time.Sleep(redrawEvery)
	bar.Show(Share{What: "hydrating"})
	bar.Close()
	require.True(t, strings.HasSuffix(out.String(), eraseLine))
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 64 << 20: "64.0 MiB", 5 << 40: "5.0 TiB", 1 << 62: "4096.0 PiB",
	} {
		require.Equal(t, want, Size(bytes))
	}
}
