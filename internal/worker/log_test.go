package worker

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

func TestBrief(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"plain text", "output.score: NaN is not valid JSON", "output.score: NaN is not valid JSON"},
		{"an exception", protocol.ErrorInfo{Type: "<class 'ValueError'>", Message: "boom", Traceback: "long"}.String(), "<class 'ValueError'>: boom"},
		{"other JSON", `{"code":7}`, `{"code":7}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, brief(tt.text))
		})
	}
	long := brief(strings.Repeat("é", maxBrief))
	require.True(t, utf8.ValidString(long))
	require.LessOrEqual(t, len(long), maxBrief+len("…"))
}

// LG-02: a worker that has nothing to do says nothing, and nothing alarming when it ends.
func TestLog_IdleWorkerIsQuiet(t *testing.T) {
	bubble(t, Config{}, output(`1`), func(r *rig) {
		r.api.Hold = time.Second
		r.start()
		time.Sleep(10 * time.Minute)
		require.GreaterOrEqual(r, len(r.api.Calls(apidouble.Take)), 500)
		require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelInfo)), 5)
		r.drain()
		_, err := r.end(time.Minute)
		require.NoError(r, err)
		require.LessOrEqual(r, len(r.logs.atLeast(slog.LevelInfo)), 5)
		require.Empty(r, r.logs.atLeast(slog.LevelWarn))
	})
}

// LG-04: whatever is said about a job names it and its batch, when something goes wrong too.
func TestLog_TroubleNamesTheJob(t *testing.T) {
	refused := func(reply apidouble.Reply) func(*rig) {
		return func(r *rig) { r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &reply }) }
	}
	tests := map[string]struct {
		cfg     Config
		handle  handleFunc
		prepare func(*rig)
	}{
		"it fails":                  {Config{}, output(`1`), refused(apidouble.Reply{Status: 400})},
		"nobody wants it":           {Config{}, output(`1`), refused(apidouble.Reply{Status: 404})},
		"the key is refused":        {Config{}, output(`1`), refused(apidouble.Reply{Status: 401})},
		"it is too large":           {Config{MaxResult: 100}, output(`"` + strings.Repeat("x", 200) + `"`), nil},
		"it takes too long":         {Config{JobTimeout: time.Second}, stubborn, nil},
		"its program dies":          {Config{}, crashing, nil},
		"its stream is not wanted":  {Config{}, counting(5, nil), func(r *rig) { r.withoutURLs() }},
		"its stream is too large":   {Config{MaxChunk: 10}, counting(1000, nil), nil},
		"it is handed out again":    {Config{Concurrency: 2}, stubborn, func(r *rig) { r.api.Offer(`{"id":"crash-2s","batchId":"b7","input":1}`) }},
		"the platform stops it":     {Config{}, stubborn, func(r *rig) { time.AfterFunc(time.Second, func() { r.api.StopJobs("crash-2s") }) }},
		"the worker is told to end": {Config{FailOnKill: true}, stubborn, func(r *rig) { time.AfterFunc(time.Second, func() { r.abort() }) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, tt.cfg, tt.handle, func(r *rig) {
				if tt.prepare != nil {
					tt.prepare(r)
				}
				r.api.Offer(`{"id":"crash-2s","batchId":"b7","input":1}`)
				r.start()
				time.Sleep(20 * time.Minute)
				about := 0
				for _, line := range r.logs.atLeast(slog.LevelDebug) {
					if slices.ContainsFunc(ofNoJob, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) {
						continue
					}
					about++
					require.Contains(r, line, " job=crash-2s batch=b7")
				}
				require.GreaterOrEqual(r, about, 2)
				for _, rec := range r.logs.records { // those that atLeast leaves out
					if rec.Message == jobFailed {
						require.Equal(r, []string{"crash-2s", "b7"}, namesOf(rec))
					}
				}
			})
		})
	}
}

// ofNoJob are the lines that are about the worker and its program.
var ofNoJob = []string{"Ready for jobs.", "No heartbeats are sent", "Streams are not posted", "The handler's program ended", "Starting the handler's program"}

// namesOf are the job and the batch that a record names.
func namesOf(rec slog.Record) []string {
	names := make([]string, 2)
	rec.Attrs(func(a slog.Attr) bool {
		if i := slices.Index([]string{"job", "batch"}, a.Key); i >= 0 {
			names[i] = a.Value.String()
		}
		return true
	})
	return names
}
