package proc

import (
	"cmp"
	"io"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"runpodctl-worker/internal/mistake"
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

// pass passes a stream of the program on. A mistake there ends the program, which could not say anything any more.
func (p *Process) pass(from io.Reader, to io.Writer) {
	err := mistake.Catch(func() { copyOutput(from, to, p.tail.stream()) })
	if err == nil {
		return
	}
	p.mu.Lock()
	p.mistake = cmp.Or(p.mistake, err)
	p.mu.Unlock()
	_ = p.Signal(unix.SIGKILL) // whoever waits for its end sees to the rest
}

// tail keeps the last lines of several streams for crash reports.
type tail struct {
	mu      sync.Mutex
	done    []string
	streams []*Lines
}

// stream returns the function that takes the bytes of one more stream.
func (t *tail) stream() func([]byte) {
	l := NewLines(lineBytes, func(text []byte, _ int) { t.keep(string(text)) })
	t.mu.Lock()
	t.streams = append(t.streams, l)
	t.mu.Unlock()
	return func(b []byte) {
		t.mu.Lock()
		defer t.mu.Unlock()
		_, _ = l.Write(b) // it never fails
	}
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
	for _, l := range t.streams {
		text, _ := l.kept()
		if text := string(text); strings.TrimSpace(text) != "" {
			lines = append(lines, text)
		}
	}
	return lines[max(0, len(lines)-tailLines):]
}
