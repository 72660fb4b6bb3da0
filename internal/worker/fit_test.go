package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// elsewhere is a place for large outputs.
type elsewhere struct {
	takes time.Duration
	fails error

	mu     sync.Mutex
	began  int
	stored map[string]string // the output, by job
}

func (e *elsewhere) Offload(ctx context.Context, job string, output io.ReaderAt, size int64) (json.RawMessage, error) {
	e.mu.Lock()
	e.began++
	e.mu.Unlock()
	if !sleep(ctx, e.takes) {
		return nil, context.Cause(ctx)
	}
	content, err := io.ReadAll(io.NewSectionReader(output, 0, size))
	if err = errors.Join(err, e.fails); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stored == nil {
		e.stored = map[string]string{}
	}
	e.stored[job] = string(content)
	return json.RawMessage(`{"at":"` + job + `"}`), nil
}

// uploads are those that were begun.
func (e *elsewhere) uploads() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.began
}

func TestOffload(t *testing.T) {
	const limit = 1000
	text := func(bodySize int) string { return `"` + strings.Repeat("x", bodySize-len(`{"output":""}`)) + `"` }
	fixed := func(outcome protocol.Outcome) handleFunc {
		return func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) { return outcome, nil }
	}
	tests := map[string]struct {
		fails  error // of the upload
		handle handleFunc
		want   string // the body
		stored string // the output
	}{
		"exactly the limit": {handle: output(text(limit)), want: `{"output":` + text(limit) + `}`},
		"one byte more":     {handle: output(text(limit + 1)), want: `{"output":{"at":"j"}}`, stored: text(limit + 1)},
		"an upload that fails": {
			fails: errors.New("403 Forbidden"), handle: output(text(2000)),
			want: `{"error":"the result is too large: 2000 bytes, the limit is 1000; it could not be uploaded: 403 Forbidden"}`,
		},
		"an error with a large output": {
			handle: fixed(protocol.Outcome{Output: json.RawMessage(text(2000)), Error: "half done"}),
			want:   `{"output":{"at":"j"},"error":"half done"}`, stored: text(2000),
		},
		"an error that is too large itself": {
			handle: fixed(protocol.Outcome{Output: json.RawMessage(`1`), Error: strings.Repeat("e", 2000)}),
			want:   `{"error":"` + strings.Repeat("e", maxBrief) + `… (the result is too large: 2023 bytes, the limit is 1000)"}`,
		},
		"a fresh worker": {
			handle: fixed(protocol.Outcome{Output: json.RawMessage(text(2000)), Refresh: true}),
			want:   `{"output":{"at":"j"},"stopPod":true}`, stored: text(2000),
		},
		"a stream and its aggregate": {
			handle: func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
				item := json.RawMessage(text(900))
				sink.Progress(item)
				return protocol.Outcome{Output: json.RawMessage(fmt.Sprintf("[%s,%s]", item, item))}, errors.Join(sink.Chunk(item), sink.Chunk(item))
			},
			want: `{"output":{"at":"j"}}`, stored: "[" + text(900) + "," + text(900) + "]",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			place := &elsewhere{fails: tt.fails}
			bubble(t, Config{MaxResult: limit, Offload: place}, tt.handle, func(r *rig) {
				offer(r, "j")
				r.start()
				require.Equal(r, tt.want, r.results(time.Minute, 1)[0].Body)
				require.Equal(r, tt.stored, place.stored["j"])
				r.await(time.Second, "an end", func() bool { return len(r.worker.ledger.ids()) == 0 })
				require.Zero(r, r.worker.ledger.owed)
			})
		})
	}
}

// While an output is uploaded, its job has no end: heartbeats name it, and no more than the outbox holds is taken.
func TestOffload_IsInProgress(t *testing.T) {
	place := &elsewhere{takes: time.Minute}
	bubble(t, Config{MaxResult: 40, PingInterval: time.Second, Offload: place}, output(`"`+strings.Repeat("x", 99)+`"`), func(r *rig) {
		offer(r, "a", "b", "c")
		r.start()
		time.Sleep(50 * time.Second)
		require.Equal(r, []string{"a", "b"}, r.worker.ledger.ids(), "one on its way, one that waits with its slot")
		pings := r.api.Calls(apidouble.Ping)
		require.Equal(r, "a,b", pings[len(pings)-1].Query.Get("job_id"))
		require.Empty(r, r.api.Calls(apidouble.Done))
		r.results(5*time.Minute, 3)
	})
}

// What ends a job, or the worker, ends an upload.
func TestOffload_IsCut(t *testing.T) {
	large := output(`"` + strings.Repeat("x", 99) + `"`)
	tests := map[string]struct {
		cfg    Config
		cut    func(*rig)
		owed   []string
		result string // that is posted
	}{
		"the platform stops the job": {cut: func(r *rig) { r.api.StopJobs("j") }},
		"the second signal":          {cut: func(r *rig) { r.drain(); r.abort() }, owed: []string{"j"}},
		"the end of the grace period": {
			cfg: Config{GracePeriod: 10 * time.Second}, cut: func(r *rig) { r.drain() }, owed: []string{"j"},
		},
		"the second signal, and no last word in time": {
			cfg: Config{FailOnKill: true}, cut: func(r *rig) { r.drain(); r.abort() }, owed: []string{"j"},
		},
		"a drain waits": {cut: func(r *rig) { r.drain() }, result: `{"output":{"at":"j"}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			place := &elsewhere{takes: time.Minute}
			tt.cfg.MaxResult, tt.cfg.Offload = 40, place
			onDisk(t, tt.cfg, large, func(r *rig, d *disk) {
				offer(r, "j")
				r.start()
				r.await(time.Minute, "an upload", func() bool { return place.uploads() > 0 })
				tt.cut(r)
				time.Sleep(2 * time.Minute)
				require.Empty(r, r.worker.ledger.ids())
				if tt.result == "" {
					require.Empty(r, r.api.Calls(apidouble.Done))
				} else {
					require.Equal(r, tt.result, r.results(0, 1)[0].Body)
				}
				r.stop()
				require.Equal(r, tt.owed, d.owed())
			})
		})
	}
}

// The next process uploads what this one could not, and posts what this one has uploaded.
func TestOffload_Killed(t *testing.T) {
	tests := map[string]struct {
		when    func(*rig, *elsewhere)
		uploads int
	}{
		"in the upload":   {func(_ *rig, place *elsewhere) { place.takes = time.Minute }, 2},
		"before the post": {func(*rig, *elsewhere) {}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			place := &elsewhere{}
			large := `"` + strings.Repeat("x", 100_000) + `"`
			onDisk(t, Config{MaxResult: 1000, Offload: place}, output(large), func(r *rig, d *disk) {
				up := down(r)
				tt.when(r, place)
				offer(r, "j")
				r.start()
				time.Sleep(30 * time.Second)
				require.Equal(r, 1, place.uploads())
				r.kill(d)
				up()
				r.start()
				require.Equal(r, `{"output":{"at":"j"}}`, r.results(3*time.Minute, 1)[0].Body)
				require.Equal(r, tt.uploads, place.uploads())
				require.Equal(r, large, place.stored["j"])
				require.Equal(r, 0, r.handler.started("j"), "it is not run again")
				r.await(time.Second, "an end", func() bool { return len(r.worker.ledger.ids()) == 0 })
				require.Zero(r, r.worker.ledger.owed)
				r.stop()
				require.Empty(r, d.owed())
			})
		})
	}
}
