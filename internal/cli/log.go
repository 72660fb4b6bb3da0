package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"runpodctl-worker/internal/config"
)

// The attributes that a log line shows in a place of their own.
const (
	attrJob   = "job"
	attrBatch = "batch"
)

// maxMessage is the longest message, in characters, that the platform's log keeps whole.
const maxMessage = 4096

// newLogger logs to w as the Python SDK does, so that what people grep for stays the same.
func newLogger(w io.Writer, lookup config.Lookup, level, format string, color bool) (*slog.Logger, error) {
	fromEnv := false
	if level == "" {
		for _, name := range []string{config.LogLevel, config.DebugLevel} {
			if v, ok := lookup(name); ok && v != "" && level == "" {
				level, fromEnv = v, true
			}
		}
	}
	lvl, ok := levels[strings.ToUpper(level)]
	if !ok && !fromEnv {
		return nil, usagef("--%s %q: want ERROR, WARN, INFO or DEBUG", flagLogLevel, level)
	}
	asJSON := format == "json"
	switch format {
	case "json", "text":
	case "auto":
		endpoint, set := lookup(config.EndpointID)
		asJSON = set && endpoint != ""
	default:
		return nil, usagef("--%s %q: want auto, json or text", flagLogFormat, format)
	}
	logger := slog.New(&logHandler{w: w, mu: new(sync.Mutex), level: lvl, json: asJSON, color: color})
	if !ok {
		// A worker must not die of a misspelt level in its environment.
		logger.Warn(fmt.Sprintf("log level %q is none of ERROR, WARN, INFO, DEBUG; using INFO", level))
	}
	return logger, nil
}

var levels = map[string]slog.Level{
	"": slog.LevelInfo, "NOTSET": slog.LevelDebug - 4, "TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug,
	"INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError,
}

// logHandler writes `LEVEL  | job | message`, or one JSON object a line.
type logHandler struct {
	w     io.Writer
	mu    *sync.Mutex
	level slog.Level
	json  bool
	color bool
	attrs []slog.Attr
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = append(slices.Clip(h.attrs), attrs...)
	return &next
}

func (h *logHandler) WithGroup(string) slog.Handler { return h } // nobody groups

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var job, batch string
	var rest strings.Builder
	add := func(a slog.Attr) bool {
		switch a.Key {
		case attrJob:
			job = a.Value.String()
		case attrBatch:
			batch = a.Value.String()
		default:
			fmt.Fprintf(&rest, " | %s=%v", a.Key, a.Value)
		}
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	message := shorten(r.Message + rest.String())
	if batch != "" {
		message = "[batchId=" + batch + "] " + message
	}
	line := h.line(r.Level, job, message)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.w.Write(line)
	return err
}

func (h *logHandler) line(level slog.Level, job, message string) []byte {
	switch name := levelName(level); {
	case h.json:
		return jsonLine(name, job, message)
	case h.color:
		return colored(level, textLine(name, job, message))
	default:
		return textLine(name, job, message)
	}
}

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

func jsonLine(level, job, message string) []byte {
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

// shorten cuts the middle out of a message that is too long.
func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	runes := []rune(message)
	if len(runes) <= maxMessage {
		return message
	}
	half := maxMessage / 2
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
