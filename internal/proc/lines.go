package proc

import (
	"bytes"
	"time"
)

// Lines is a writer that hands on what it gets line by line. A \r, unless a newline follows, begins the line anew, as on
// a terminal. It is for one goroutine.
type Lines struct {
	// Every, where it is not 0, has a line that is written anew again and again, as a progress bar is, handed on as often.
	Every time.Duration

	limit int
	line  func(text []byte, cut int)
	text  []byte
	cut   int  // bytes of the line that went over the limit
	back  bool // a \r came: what follows, unless it is the newline, overwrites the line
	shown time.Time
}

// NewLines returns a Lines that keeps the first limit bytes of each line, but no torn word. line gets them without the end of the line, and
// the number of bytes that were left out; the text is its own only until it returns.
func NewLines(limit int, line func(text []byte, cut int)) *Lines {
	return &Lines{limit: limit, line: line, shown: time.Now()}
}

// Write never fails.
func (l *Lines) Write(b []byte) (int, error) {
	size := len(b)
	for len(b) > 0 {
		if l.back && b[0] != '\n' {
			l.overwrite()
		}
		end := bytes.IndexAny(b, "\r\n")
		if end < 0 {
			l.add(b)
			break
		}
		l.add(b[:end])
		l.back = b[end] == '\r'
		if !l.back {
			l.emit()
		}
		b = b[end+1:]
	}
	return size, nil
}

// Flush hands on a line that has begun, at the end of the stream.
func (l *Lines) Flush() {
	if len(l.text) > 0 {
		l.emit()
	}
}

func (l *Lines) overwrite() {
	if l.Every > 0 && len(l.text) > 0 && time.Since(l.shown) >= l.Every {
		l.emit()
	}
	l.text, l.cut = l.text[:0], 0
}

func (l *Lines) emit() {
	l.line(l.kept())
	l.text, l.cut = l.text[:0], 0
	l.back = false
	l.shown = time.Now()
}

// kept is what there is of the line, and how much was left out.
func (l *Lines) kept() (text []byte, cut int) {
	if l.cut == 0 {
		return l.text, 0
	}
	whole := WithoutTornWord(l.text)
	return whole, l.cut + len(l.text) - len(whole)
}

// add keeps the beginning of a long line.
func (l *Lines) add(b []byte) {
	l.back = false
	kept := min(len(b), l.limit-len(l.text))
	l.text = append(l.text, b[:kept]...)
	l.cut += len(b) - kept
}

// tornWord is how much of a word that was cut in two is left out: no secret is longer.
const tornWord = 1024

// WithoutTornWord is a text that was cut at its end without the word that was cut in two: nobody would find a part of a
// secret. A text that is one word stays.
func WithoutTornWord(text []byte) []byte {
	if end := bytes.LastIndexAny(text, " \t\"'<>"); end >= 0 {
		return text[:max(end+1, len(text)-tornWord)]
	}
	return text
}
