package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/joblog"
	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

func newJobLogs(t *testing.T, log *slog.Logger) (logs *jobLogs, path string) {
	t.Helper()
	path = t.TempDir()
	dir, err := joblog.Open(path)
	require.NoError(t, err)
	logs = &jobLogs{dir: dir, secrets: redact.New("s3cr3t-key"), log: log}
	t.Cleanup(logs.close)
	return logs, path
}

// keptIn are the lines of all jobs.
func keptIn(t *testing.T, path string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "*"))
	require.NoError(t, err)
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all.WriteString(filepath.Base(file) + ": " + string(text))
	}
	return all.String()
}

func TestJobLogs_Lines(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		cut        int
		shown      string
		kept       string
	}{
		{"printed", `{"requestId": "j1", "message": " hello", "level": null}`, 0, " hello", `j1.jsonl: {"requestId":"j1","message":" hello","level":"INFO"}`},
		{"JSON", `{"requestId": "j1", "message": "{\"a\":  1}", "level": null}`, 0, `{"a":  1}`, `j1.jsonl: {"requestId":"j1","message":"{\"a\":  1}","level":"INFO"}`},
		{"logged", `{"requestId": "j1", "message": "hello", "level": "WARN"}`, 0, "WARN   | j1 | hello", `j1.jsonl: {"requestId":"j1","message":"hello","level":"WARN"}`},
		{"logged, of no job", `{"requestId": null, "message": "hello", "level": "INFO"}`, 0, "INFO   | hello", ""},
		{"logged, of an odd job", `{"requestId": "../j", "message": "hello", "level": "INFO"}`, 0, "INFO   | ../j | hello", `..%2Fj.jsonl: {"requestId":"../j","message":"hello","level":"INFO"}`},
		{"past Python", "hello", 0, "hello", `only.jsonl: {"requestId":"only","message":"hello","level":"INFO"}`},
		{"a record past Python", `{"a":  1}`, 0, `{"a":  1}`, `only.jsonl: {"requestId":"only","message":"{\"a\":  1}","level":"INFO"}`},
		{"cut", "hello", 7, "hello...TRUNCATED (7 bytes)...", `only.jsonl: {"requestId":"only","message":"hello...TRUNCATED (7 bytes)...","level":"INFO"}`},
		{"blank", " ", 0, " ", ""},
		{"a key", "key=s3cr3t-key", 0, "key=[REDACTED]", `only.jsonl: {"requestId":"only","message":"key=[REDACTED]","level":"INFO"}`},
		{"a printed key", `{"requestId": "j1", "message": "s3cr3t\u002dkey", "level": null}`, 0, "[REDACTED]", `j1.jsonl: {"requestId":"j1","message":"[REDACTED]","level":"INFO"}`},
		{"a logged key", `{"requestId": "j1", "message": "s3cr3t\u002dkey", "level": "INFO"}`, 0, "INFO   | j1 | [REDACTED]", `j1.jsonl: {"requestId":"j1","message":"[REDACTED]","level":"INFO"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			logs, path := newJobLogs(t, slog.New(slog.DiscardHandler))
			var out bytes.Buffer
			logs.line(&out, protocol.Job{ID: "only", BatchID: "b1"}, []byte(tt.text), tt.cut)
			require.Equal(t, tt.shown+"\n", out.String())
			require.Equal(t, tt.kept, strings.TrimSuffix(keptIn(t, path), "\n"))
		})
	}
}

func TestJobLogs_OwnLines(t *testing.T) {
	var out bytes.Buffer
	log, err := newLogger(&out, func(string) (string, bool) { return "", false }, nil, "", "text", false)
	require.NoError(t, err)
	logs, path := newJobLogs(t, log)
	log = logs.through(log)
	log.Info("about no job")
	log.Debug("not shown", "job", "j1")
	log.With("job", "j1").Warn("about a job", "batch", "b1", "more", 1)
	require.Equal(t, "INFO   | about no job\nWARN   | j1 | [batchId=b1] about a job | more=1\n", out.String())
	require.Equal(t, `j1.jsonl: {"requestId":"j1","message":"[batchId=b1] about a job | more=1","level":"WARN"}`+"\n", keptIn(t, path))
}

func TestJobLogs_ThatCannotBeWritten(t *testing.T) {
	var own, out bytes.Buffer
	log, err := newLogger(&own, func(string) (string, bool) { return "", false }, nil, "", "text", false)
	require.NoError(t, err)
	logs, path := newJobLogs(t, log)
	require.NoError(t, os.Remove(path))
	for range 3 {
		logs.line(&out, protocol.Job{ID: "j1"}, []byte("hello"), 0)
	}
	require.Equal(t, "hello\nhello\nhello\n", out.String())
	require.Equal(t, 1, strings.Count(own.String(), "\n"), own.String())
	require.Contains(t, own.String(), "WARN   | Lines of jobs are missing in --log-dir")
}
