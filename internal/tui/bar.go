package tui

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

const (
	redrawEvery = 100 * time.Millisecond
	barWidth    = 24 // cells of the bar itself
	eraseLine   = "\r\x1b[K"
)

// Share is how much of a piece of work is done.
type Share struct {
	What              string // in one word or two
	Files, FilesTotal int64
	Bytes, BytesTotal int64
}

// Bar shows on the last line of a terminal how far a piece of work is. What else goes to the terminal meanwhile has to be
// written through it, and stands above. Nothing but that line is touched, so there is nothing to restore.
type Bar struct {
	w     io.Writer
	width func() int
	look  look

	mu    sync.Mutex
	began time.Time // of what is shown
	share Share
	drawn time.Time // zero while the line is empty
}

// NewBar returns a Bar for a terminal of a width that may change.
func NewBar(w io.Writer, width func() int, color bool) *Bar {
	return &Bar{w: w, width: width, look: newLook(color)}
}

// Show draws the line anew, unless that was done a moment ago.
func (b *Bar) Show(s Share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.began.IsZero() || s.What != b.share.What {
		b.began = now
	} else if now.Sub(b.drawn) < redrawEvery {
		return
	}
	b.share, b.drawn = s, now
	_, _ = io.WriteString(b.w, eraseLine+b.line(now)) // whoever looked is gone
}

// Write writes above the line.
func (b *Bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	return b.w.Write(p)
}

// Close takes the line off the terminal.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
}

func (b *Bar) erase() {
	if !b.drawn.IsZero() {
		b.drawn = time.Time{}
		_, _ = io.WriteString(b.w, eraseLine)
	}
}

// line leaves the last cell free: a terminal that has it filled may go on to the next line.
func (b *Bar) line(now time.Time) string {
	s := b.share
	done, total := float64(s.Bytes), float64(s.BytesTotal)
	if s.BytesTotal <= 0 {
		done, total = float64(s.Files), float64(s.FilesTotal)
	}
	share := 0.0
	if total > 0 {
		share = min(1, max(0, done/total))
	}
	full := int(math.Floor(share * barWidth))
	bar := b.look.busy.Render(strings.Repeat("█", full)) + b.look.faint.Render(strings.Repeat("░", barWidth-full))
	text := fmt.Sprintf("%s %s %3.0f %%  %d of %d files", cleanLine(s.What), bar, math.Floor(share*100), s.Files, s.FilesTotal)
	if s.BytesTotal > 0 {
		text += fmt.Sprintf(", %s of %s", Size(s.Bytes), Size(s.BytesTotal))
		if took := now.Sub(b.began).Seconds(); took >= 1 {
			text += fmt.Sprintf(", %s/s", Size(int64(float64(s.Bytes)/took)))
		}
	}
	if width := b.width(); width > 0 {
		return cut(text, width-1)
	}
	return text
}

// Size is a number of bytes for people.
func Size(bytes int64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB"}
	if bytes < 1<<10 {
		return fmt.Sprintf("%d B", bytes)
	}
	value, unit := float64(bytes)/(1<<10), 0
	for value >= 1023.95 && unit < len(units)-1 {
		value, unit = value/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}
