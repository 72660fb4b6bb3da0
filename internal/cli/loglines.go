package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
)

const (
	// maxMessage is the longest message, in characters, that the platform's log keeps whole.
	maxMessage = 4096
	// maxLine is the length, in bytes, at which log collectors cut a line in two, which is no JSON then.
	maxLine = 16 << 10
)

func textLine(level, job, message string) []byte {
	if job != "" {
		message = job + " | " + message
	}
	return fmt.Appendf(nil, "%-7s| %s\n", level, message)
}

// colored lets a warning or an error stand out. Its word stands there all the same.
func colored(level slog.Level, line []byte) []byte {
	const yellow, red = 33, 31
	code := yellow
	switch {
	case level >= slog.LevelError:
		code = red
	case level < slog.LevelWarn:
		return line
	}
	return fmt.Appendf(nil, "\x1b[%dm%s\x1b[0m\n", code, bytes.TrimSuffix(line, []byte("\n")))
}

// inBatch names the batch as the SDK does.
func inBatch(batch, message string) string {
	if batch == "" {
		return message
	}
	return "[batchId=" + batch + "] " + message
}

// jsonLine is a whole line, whatever the message: it is cut until it fits.
func jsonLine(level, job, message string) []byte {
	limit := maxMessage
	line := encodeLine(level, job, shorten(message, limit))
	for len(line) >= maxLine && limit > 1 { // a character may take six bytes
		limit /= 2
		line = encodeLine(level, job, shorten(message, limit))
	}
	return line
}

func encodeLine(level, job, message string) []byte {
	var id *string // the SDK writes null where a line belongs to no job
	if job != "" {
		id = &job
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		RequestID *string `json:"requestId"`
		Message   string  `json:"message"`
		Level     string  `json:"level"`
	}{id, message, level})
	if err != nil { // strings always encode
		return nil
	}
	return line.Bytes()
}

// shorten cuts the middle out of a message of more than limit characters.
func shorten(message string, limit int) string {
	if len(message) <= limit {
		return message
	}
	runes := []rune(message)
	if len(runes) <= limit {
		return message
	}
	half := limit / 2
	return fmt.Sprintf("%s\n...TRUNCATED (%d characters)...\n%s",
		string(runes[:half]), len(runes)-2*half, string(runes[len(runes)-half:]))
}

func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARN"
	case l >= slog.LevelInfo:
		return "INFO"
	case l >= slog.LevelDebug:
		return "DEBUG"
	default:
		return "TRACE"
	}
}
