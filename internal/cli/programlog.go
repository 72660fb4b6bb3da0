package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

// What a handler's program may print. What goes beyond is left out: a log that is flooded helps nobody, and the platform's
// drops lines of its own choice.
const (
	linesASecond = 1000
	bytesASecond = 1 << 20
	burstTime    = 10 // seconds' worth that may come at once
	// floodTime is the time between two lines that say what was left out.
	floodTime = 10 * time.Second
)

// programLog brings what the handler's program prints into a log of JSON lines.
type programLog struct {
	log     *slog.Logger
	secrets *redact.Secrets
	now     func() time.Time

	mu           sync.Mutex
	lines, bytes float64 // that may come
	at           time.Time
	lost         int // lines that were left out since it was said
	lostBytes    int
	said         time.Time
}

func newProgramLog(log *slog.Logger, secrets *redact.Secrets) *programLog {
	return &programLog{
		log: log, secrets: secrets, now: time.Now,
		lines: burstTime * linesASecond, bytes: burstTime * bytesASecond, at: time.Now(),
	}
}

// line writes one line. A record of the program's own stays as it is unless it is too long, any other line becomes the message of one.
func (l *programLog) line(to io.Writer, job protocol.Job, text []byte, cut int) {
	if len(bytes.TrimSpace(text)) == 0 || !l.admit(len(text)) {
		return
	}
	// A log that is gone must not stop the program, so errors of writes mean nothing.
	if clean := l.secrets.String(string(text)); cut == 0 && isRecord(text) && isRecord([]byte(clean)) {
		if short, ok := shortRecord(job, clean); ok {
			_, _ = io.WriteString(to, short)
			return
		}
	}
	_, _ = to.Write(jsonLine(levelName(slog.LevelInfo), job.ID, inBatch(job.BatchID, printedText(l.secrets, text, cut))))
}

// printedText is a printed line without secrets and broken characters, and with a note of what was left out at its end.
func printedText(secrets *redact.Secrets, text []byte, cut int) string {
	if cut > 0 {
		whole := wholeRunes(text)
		cut += len(text) - len(whole)
		text = whole
	}
	message := secrets.CutString(string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
	if cut > 0 {
		message += fmt.Sprintf("...TRUNCATED (%d bytes)...", cut)
	}
	return message
}

// wholeRunes leaves out a character that was cut at the end of a text.
func wholeRunes(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if start := text[len(text)-i:]; utf8.RuneStart(start[0]) {
			if utf8.FullRune(start) {
				return text
			}
			return text[:len(text)-i]
		}
	}
	return text
}

// isRecord tells whether a line is one JSON object.
func isRecord(text []byte) bool {
	text = bytes.TrimSpace(text)
	return text[0] == '{' && json.Valid(text)
}

// shortRecord is a record as it fits into the log. The SDK's own loses the middle of its message; of another that is too long nothing
// can be left out, so it is none any more.
func shortRecord(job protocol.Job, text string) (string, bool) {
	if len(text) < maxLine-1 {
		return text + "\n", true
	}
	var own struct{ RequestID, Message, Level string }
	if json.Unmarshal([]byte(text), &own) != nil || own.Message == "" || own.Level == "" {
		return "", false
	}
	if own.RequestID == "" {
		own.RequestID = job.ID
	}
	return string(jsonLine(own.Level, own.RequestID, own.Message)), true
}

// admit takes a line's share of what may be printed.
func (l *programLog) admit(size int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	passed := now.Sub(l.at).Seconds()
	l.at = now
	l.lines = min(l.lines+passed*linesASecond, burstTime*linesASecond)
	l.bytes = min(l.bytes+passed*bytesASecond, burstTime*bytesASecond)
	if l.lines < 1 || l.bytes < float64(size) {
		l.lost++
		l.lostBytes += size
		return false
	}
	l.lines--
	l.bytes -= float64(size)
	if l.lost > 0 && now.Sub(l.said) >= floodTime {
		l.say(now)
	}
	return true
}

// close says what was left out last.
func (l *programLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		l.say(l.now())
	}
}

func (l *programLog) say(now time.Time) {
	l.log.Warn("The handler's program prints more than a log can take; lines were left out.",
		slog.Int("lines", l.lost), slog.Int("bytes", l.lostBytes), slog.Int("lines a second", linesASecond))
	l.lost, l.lostBytes, l.said = 0, 0, now
}
