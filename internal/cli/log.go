package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/redact"
)

// The attributes that a log line shows in a place of their own.
const (
	attrJob   = "job"
	attrBatch = "batch"
)

// logger is the log that the flags ask for.
func (s *session) logger(c *cli.Context, w io.Writer, lookup config.Lookup, color bool) (*slog.Logger, error) {
	format := ""
	if c.IsSet(flagLogFormat) {
		format = c.String(flagLogFormat)
	}
	return newLogger(w, lookup, s.secrets, c.String(flagLogLevel), format, color)
}

// newLogger logs to w as the Python SDK does, so that what people grep for stays the same. The level and the format are what flags say, empty where they
// say nothing.
func newLogger(w io.Writer, lookup config.Lookup, secrets *redact.Secrets, level, format string, color bool) (*slog.Logger, error) {
	variable := ""
	if level == "" {
		for _, name := range []string{config.LogLevel, config.DebugLevel} {
			if v, ok := lookup(name); ok && v != "" && level == "" {
				level, variable = v, name
			}
		}
	}
	lvl, ok := levels[strings.ToUpper(strings.TrimSpace(level))]
	if !ok && variable == "" {
		return nil, usagef("--%s %q: want ERROR, WARN, INFO or DEBUG", flagLogLevel, level)
	}
	if format == "" {
		format = "auto"
		if wanted, _ := lookup(config.LogFormat); wanted == "json" || wanted == "text" {
			format = wanted
		}
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
	logger := slog.New(&logHandler{w: w, mu: new(sync.Mutex), level: lvl, json: asJSON, color: color, secrets: secrets})
	if !ok {
		// A worker must not die of a misspelt level in its environment.
		logger.Warn(fmt.Sprintf("%s=%q is none of ERROR, WARN, INFO, DEBUG; using INFO", variable, level))
	}
	return logger, nil
}

var levels = map[string]slog.Level{
	"": slog.LevelInfo, "NOTSET": slog.LevelDebug - 4, "TRACE": slog.LevelDebug - 4, "DEBUG": slog.LevelDebug,
	"INFO": slog.LevelInfo, "WARN": slog.LevelWarn, "ERROR": slog.LevelError,
	"WARNING": slog.LevelWarn, "FATAL": slog.LevelError, "CRITICAL": slog.LevelError, // as some pages and Python have them
}

// logHandler writes `LEVEL  | job | message`, or one JSON object a line.
type logHandler struct {
	w     io.Writer
	mu    *sync.Mutex
	level slog.Level
	json  bool
	color bool
	attrs []slog.Attr

	secrets *redact.Secrets
	told    func(level slog.Level, job, message string) // hears of warnings and errors; may be nil
	jobs    *jobLogs                                    // have what is said about jobs too
}

// isJSON tells whether a log is for the platform, not for people.
func isJSON(log *slog.Logger) bool {
	h, ok := log.Handler().(*logHandler)
	return ok && h.json
}

// tee is a log whose warnings and errors somebody else hears of too.
func tee(log *slog.Logger, told func(level slog.Level, job, message string)) *slog.Logger {
	h, ok := log.Handler().(*logHandler)
	if !ok {
		return log
	}
	next := *h
	next.told = told
	return slog.New(&next)
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
	message := h.secrets.String(r.Message + rest.String())
	if h.told != nil && r.Level >= slog.LevelWarn {
		h.told(r.Level, job, shorten(message, maxMessage))
	}
	message = inBatch(batch, message)
	h.jobs.keep(job, levelName(r.Level), message)
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
		return colored(level, textLine(name, job, shorten(message, maxMessage)))
	default:
		return textLine(name, job, shorten(message, maxMessage))
	}
}
