package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

func TestProgramLog(t *testing.T) {
	job := protocol.Job{ID: "j1", BatchID: "b1"}
	for _, tt := range []struct {
		name string
		job  protocol.Job
		text string
		cut  int
		want string
	}{
		{"a line of a job", protocol.Job{ID: "j1"}, "hello", 0, `{"requestId":"j1","message":"hello","level":"INFO"}`},
		{"of a batch", job, "hello", 0, `{"requestId":"j1","message":"[batchId=b1] hello","level":"INFO"}`},
		{"of no job", protocol.Job{}, "hello", 0, `{"requestId":null,"message":"hello","level":"INFO"}`},
		{"a record", job, `{"own":  1}`, 0, `{"own":  1}`},
		{"a record with a key", job, `{"own":"s3cr3t-key"}`, 0, `{"own":"[REDACTED]"}`},
		{"what begins like one", protocol.Job{}, `{"own":`, 0, `{"requestId":null,"message":"{\"own\":","level":"INFO"}`},
		{"a line with a key", protocol.Job{}, "key=s3cr3t-key", 0, `{"requestId":null,"message":"key=[REDACTED]","level":"INFO"}`},
		{"a signed URL", protocol.Job{}, "see https://b/?X-Amz-Signature=ab", 0, `{"requestId":null,"message":"see https://b/?X-Amz-Signature=[REDACTED]","level":"INFO"}`},
		{"a record that would be none", protocol.Job{}, `{"authorization": 123}`, 0, `{"requestId":null,"message":"{\"authorization\": [REDACTED]}","level":"INFO"}`},
		{"a cut line", protocol.Job{}, "hello é", 7, `{"requestId":null,"message":"hello é...TRUNCATED (7 bytes)...","level":"INFO"}`},
		{"a line cut within a character", protocol.Job{}, "hello \xc3", 7, `{"requestId":null,"message":"hello ...TRUNCATED (8 bytes)...","level":"INFO"}`},
		{"a line cut within a long one", protocol.Job{}, "hello \xf0\x9f\x98", 7, `{"requestId":null,"message":"hello ...TRUNCATED (10 bytes)...","level":"INFO"}`},
		{"a cut line that is no text", protocol.Job{}, "\xff\xff", 7, `{"requestId":null,"message":"` + "\uFFFD" + `...TRUNCATED (7 bytes)...","level":"INFO"}`},
		{"a blank line", job, "  ", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			newProgramLog(slog.New(slog.DiscardHandler), redact.New("s3cr3t-key")).line(&out, tt.job, []byte(tt.text), tt.cut)
			require.Equal(t, tt.want, strings.TrimSuffix(out.String(), "\n"))
		})
	}
}

// A program that floods the log gets what a log can take, and one line now and then says what was left out.
func TestProgramLog_BoundsAFlood(t *testing.T) {
	var out, own bytes.Buffer
	log, err := newLogger(&own, func(string) (string, bool) { return "", false }, nil, "", "text", false)
	require.NoError(t, err)
	l := newProgramLog(log, nil)
	now := l.at
	l.now = func() time.Time { return now }
	written := func(lines int, size int) int {
		out.Reset()
		for range lines {
			l.line(&out, protocol.Job{}, bytes.Repeat([]byte("x"), size), 0)
		}
		return strings.Count(out.String(), "\n")
	}
	require.Equal(t, 10_000, written(30_000, 10), "a burst")
	require.Empty(t, own.String())
	now = now.Add(time.Second)
	require.Equal(t, 1000, written(5000, 10), "what comes every second")
	require.Equal(t, "WARN   | The handler's program prints more than a log can take; lines were left out. | lines=20000 | bytes=200000 | lines a second=1000\n", own.String())
	own.Reset()
	now = now.Add(time.Second)
	require.Equal(t, 1000, written(5000, 10))
	require.Empty(t, own.String(), "it is not said every second")
	now = now.Add(time.Hour)
	require.Equal(t, 5000, written(5000, 10), "when it has calmed down")
	require.Contains(t, own.String(), "lines=8000")
	own.Reset()
	l.close()
	require.Empty(t, own.String(), "nothing was left out since")
	now = now.Add(time.Hour)
	require.InDelta(t, 10<<20/(60<<10), written(1000, 60<<10), 1, "by size")
	l.close()
	require.Contains(t, own.String(), "lines=8")
}

// The platform's log reads lines of up to 16 KiB, whatever is in them.
func TestLogger_WritesWholeLines(t *testing.T) {
	for name, unit := range map[string]string{"text": "abcdefgh\n", "runes": "é€😀\n", "controls": "\x00\x01\x1b", "no text": "\xff\xfe"} {
		t.Run(name, func(t *testing.T) {
			for shift := range 8 {
				var out bytes.Buffer
				log, err := newLogger(&out, func(string) (string, bool) { return "", false }, nil, "", "json", false)
				require.NoError(t, err)
				log.Info(strings.Repeat("x", shift)+strings.Repeat(unit, 100<<10/len(unit)), "job", "j", "batch", "b")
				require.Less(t, out.Len(), 16<<10)
				require.Equal(t, 1, strings.Count(out.String(), "\n"))
				var record struct{ RequestID, Message string }
				require.NoError(t, json.Unmarshal(out.Bytes(), &record))
				require.True(t, utf8.ValidString(record.Message))
				require.Contains(t, record.Message, "TRUNCATED")
				require.True(t, strings.HasPrefix(record.Message, "[batchId=b] "))
			}
		})
	}
}

// LG-01: nor is a record of the program's own longer, such as the official SDK's, which writes a character as up to twelve.
func TestProgramLog_LongRecords(t *testing.T) {
	escaped := strings.Repeat(`\ud83d\ude00\n`, 2500)
	for _, tt := range []struct{ name, text, id, level, message string }{
		{"the SDK's", `{"requestId": "j2", "message": "` + escaped + `", "level": "ERROR"}`, "j2", "ERROR", "\U0001f600\n"},
		{"the SDK's, of no job", `{"requestId": null, "message": "` + escaped + `", "level": "INFO"}`, "j1", "INFO", "\U0001f600\n"},
		{"another", `{"text": "` + escaped + `"}`, "j1", "INFO", `{"text": "\ud83d`},
		{"another with a number for a message", `{"message": 1, "text": "` + escaped + `"}`, "j1", "INFO", `{"message": 1, `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			newProgramLog(slog.New(slog.DiscardHandler), nil).line(&out, protocol.Job{ID: "j1"}, []byte(tt.text), 0)
			require.Less(t, out.Len(), 16<<10)
			require.Equal(t, 1, strings.Count(out.String(), "\n"))
			var record struct{ RequestID, Message, Level string }
			require.NoError(t, json.Unmarshal(out.Bytes(), &record))
			require.Equal(t, tt.id, record.RequestID)
			require.Equal(t, tt.level, record.Level)
			require.True(t, strings.HasPrefix(record.Message, tt.message), record.Message[:20])
			require.Contains(t, record.Message[len(record.Message)/3:], "...TRUNCATED (")
		})
	}
	fits := `{"message":"` + strings.Repeat("x", 10_000) + `"}`
	var out bytes.Buffer
	newProgramLog(slog.New(slog.DiscardHandler), nil).line(&out, protocol.Job{ID: "j1"}, []byte(fits), 0)
	require.Equal(t, fits+"\n", out.String())
}
