package proc

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	tailLines = 20
	lineBytes = 1024
)

// copyOutput passes bytes on as they arrive, so that a progress bar moves and a prompt without a
// newline shows. A writer that fails must not stop the program, which would block on a full pipe.
func copyOutput(from io.Reader, to io.Writer, keep func([]byte)) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			keep(buf[:n])
			if to != nil {
				if _, werr := to.Write(buf[:n]); werr != nil {
					to = nil
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// tail keeps the last lines of several streams for crash reports.
type tail struct {
	mu      sync.Mutex
	done    []string
	partial []*line
}

// line is the unfinished line of one stream.
type line struct {
	text []byte
	back bool // a \r came: what follows, unless it is the newline, overwrites the line
}

// stream returns the function that takes the bytes of one more stream.
func (t *tail) stream() func([]byte) {
	l := new(line)
	t.mu.Lock()
	t.partial = append(t.partial, l)
	t.mu.Unlock()
	return func(b []byte) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for len(b) > 0 {
			if l.back && b[0] != '\n' {
				l.text = l.text[:0]
			}
			end := bytes.IndexAny(b, "\r\n")
			if end < 0 {
				l.add(b)
				return
			}
			l.add(b[:end])
			l.back = b[end] == '\r'
			if !l.back {
				t.keep(string(l.text))
				l.text = l.text[:0]
			}
			b = b[end+1:]
		}
	}
}

// add keeps the beginning of a long line.
func (l *line) add(b []byte) {
	l.back = false
	l.text = append(l.text, b[:min(len(b), lineBytes-len(l.text))]...)
}

func (t *tail) keep(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if len(t.done) == tailLines {
		t.done = append(t.done[:0], t.done[1:]...)
	}
	t.done = append(t.done, text)
}

func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.done...)
	for _, l := range t.partial {
		if text := string(l.text); strings.TrimSpace(text) != "" {
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-tailLines):]
}
