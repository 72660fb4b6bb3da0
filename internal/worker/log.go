package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"runpodctl-worker/internal/protocol"
)

// repeatAfter is how long an error that keeps coming back is not logged again, and a job whose result was not
// wanted is not run again.
const repeatAfter = time.Minute

// recent remembers for a while.
type recent struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

// add remembers a key from now on, unless it does already: then it returns false.
func (r *recent) add(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fresh(key) {
		return false
	}
	for k := range r.seen { // so that the map holds nothing older
		if !r.fresh(k) {
			delete(r.seen, k)
		}
	}
	if r.seen == nil {
		r.seen = map[string]time.Time{}
	}
	r.seen[key] = time.Now()
	return true
}

func (r *recent) fresh(key string) bool {
	at, ok := r.seen[key]
	return ok && time.Since(at) < repeatAfter
}

// complain logs an error at warn, but the same one only once in a while. That the platform does not know the
// worker is worse than that: only people can change it.
func (w *Worker) complain(msg string, err error, attrs ...slog.Attr) {
	level := slog.LevelWarn
	if answerTo(0, err) == denial {
		level = slog.LevelError
		attrs = append(attrs, slog.String("hint", "the platform does not accept the key in RUNPOD_AI_API_KEY"))
	}
	if !w.said.add(msg + "\x00" + kind(err)) {
		level = slog.LevelDebug
	}
	w.log.LogAttrs(context.Background(), level, msg, append(attrs, slog.Any("error", err))...)
}

// kind is what equal errors have in common. The text of a network error names ports that change with every
// attempt; what lies at the bottom of it does not.
func kind(err error) string {
	if status, ok := errors.AsType[*protocol.StatusError](err); ok {
		return (&protocol.StatusError{Call: status.Call, Code: status.Code}).Error()
	}
	if decode, ok := errors.AsType[*protocol.DecodeError](err); ok {
		return decode.Call + ": decode"
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}

// jobFailed is logged for every job that ends FAILED.
const jobFailed = "The job failed."

// maxBrief is how much of an error fits into a log line beside its job.
const maxBrief = 300

// brief is the gist of a job's error: of an exception, its type and message.
func brief(text string) string {
	var info protocol.ErrorInfo
	if json.Unmarshal([]byte(text), &info) == nil && info.Type != "" {
		text = info.Type + ": " + info.Message
	}
	if len(text) > maxBrief {
		text = strings.ToValidUTF8(text[:maxBrief], "") + "…"
	}
	return text
}
