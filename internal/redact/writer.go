package redact

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	// longestLine is how much of a line waits for its end.
	longestLine = 64 << 10
	// longestSecret is how much of a line without end stays behind, so that no secret up to this length is cut in two.
	longestSecret = 16 << 10
)

// Writer passes on what it gets, without secrets, also where one comes in pieces. What has no secret in it is passed on at
// once, so that a prompt shows and a progress bar moves; of a line that may hold one, the rest waits for the end of the line.
type Writer struct {
	secrets *Secrets
	to      io.Writer

	mu    sync.Mutex
	line  []byte // what has come of it
	shown int    // bytes of it that were passed on
	held  bool   // the others wait for its end
	err   error
}

// Writer returns a Writer to another.
func (s *Secrets) Writer(to io.Writer) *Writer { return &Writer{secrets: s, to: to} }

// Write implements io.Writer. An error is that of an earlier Write too.
func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []byte
	size := len(b)
	for len(b) > 0 {
		end := bytes.IndexAny(b, "\r\n") + 1
		if end == 0 {
			end = min(len(b), longestLine-len(w.line))
		}
		w.line = append(w.line, b[:end]...)
		b = b[end:]
		switch last := w.line[len(w.line)-1]; {
		case last == '\n', last == '\r':
			out = w.finish(out, w.secrets.String)
		case len(w.line) == longestLine:
			out = w.cut(out)
		}
	}
	return size, w.pass(w.peek(out))
}

// Flush passes on what waits for the end of its line, unless somebody still waits to write.
func (w *Writer) Flush() {
	if w.mu.TryLock() {
		defer w.mu.Unlock()
		_ = w.pass(w.finish(nil, w.secrets.CutString)) // there is nobody left to tell
	}
}

// finish appends the rest of the line, made clean.
func (w *Writer) finish(out []byte, clean func(string) string) []byte {
	line, shown := string(w.line), string(w.line[:w.shown])
	w.line, w.shown, w.held = w.line[:0], 0, false
	if rest, ok := strings.CutPrefix(clean(line), shown); ok {
		return append(out, rest...)
	}
	return append(out, clean(line[len(shown):])...)
}

// cut appends the beginning of a line without end. What stays may be the beginning of a secret.
func (w *Writer) cut(out []byte) []byte {
	at := w.secrets.between(string(w.line), longestLine-longestSecret)
	if at == 0 { // no secret is as long
		return w.finish(out, w.secrets.String)
	}
	rest, shown, held := string(w.line[at:]), max(0, w.shown-at), w.held && w.shown >= at
	if w.shown < at {
		w.line = w.line[:at]
		out = w.finish(out, w.secrets.String)
	}
	w.line, w.shown, w.held = append(w.line[:0], rest...), shown, held
	return out
}

// peek appends what can be shown before the line has its end: all before the first thing that may be a secret, or lead to one.
func (w *Writer) peek(out []byte) []byte {
	if w.held {
		return out
	}
	safe, certain := w.secrets.harmless(string(w.line[w.shown:]))
	out = append(out, w.line[w.shown:w.shown+safe]...)
	w.shown += safe
	w.held = certain
	return out
}

func (w *Writer) pass(out []byte) error {
	if len(out) > 0 && w.err == nil {
		_, w.err = w.to.Write(out)
	}
	return w.err
}

// harmless is the length of the beginning of a text that stays as it is, whatever follows. It is certain when something
// stands behind it that will not turn out to be harmless too.
func (s *Secrets) harmless(text string) (safe int, certain bool) {
	safe = len(text)
	look := func(text, word string) {
		if i := strings.Index(text, word); i >= 0 {
			safe, certain = min(safe, i), true
		}
		safe = min(safe, len(text)-begun(text, word))
	}
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // letters that are longer in the other case: positions do not match
		return 0, true
	}
	for _, f := range all {
		look(lower, f.sign)
	}
	if s == nil {
		return safe, certain
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, value := range s.values {
		look(text, value)
	}
	return safe, certain
}

// begun is how much of a word stands at the end of a text that has not all of it.
func begun(text, word string) int {
	for n := min(len(word)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}
