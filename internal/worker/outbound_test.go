package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// counting yields the numbers below n, all of them in the same memory, as the reader of a program's frames does.
func counting(n int, yielded *atomic.Int64) handleFunc {
	return func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		var item []byte
		for i := range n {
			item = fmt.Append(item[:0], i)
			if err := sink.Chunk(item); err != nil {
				return protocol.Outcome{Error: "stopped: " + err.Error(), Stream: true}, nil
			}
			if yielded != nil {
				yielded.Add(1)
			}
		}
		return protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}, nil
	}
}

// RD-05
func TestStream_OrderWithoutGaps(t *testing.T) {
	bubble(t, Config{}, counting(200, nil), func(r *rig) {
		r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
			if rand.N(5) == 0 {
				return &apidouble.Reply{Status: 503}
			}
			return &apidouble.Reply{Delay: rand.N(300 * time.Millisecond), Usual: true}
		})
		offer(r, "j")
		r.start()
		done := r.results(30*time.Minute, 1)[0]
		require.Equal(r, "true", done.Query.Get("isStream"))
		chunks := r.api.Accepted(apidouble.Stream)
		require.Len(r, chunks, 200)
		for i, c := range chunks {
			require.Equal(r, fmt.Sprintf(`{"output":%d}`, i), c.Body)
			require.Equal(r, "false", c.Query.Get("isStream"))
			require.True(r, c.At.Before(done.At))
		}
	})
}

// RD-05
func TestStream_BackPressure(t *testing.T) {
	t.Run("number", func(t *testing.T) {
		var yielded atomic.Int64
		bubble(t, Config{}, counting(1000, &yielded), func(r *rig) {
			r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
				return &apidouble.Reply{Delay: time.Second, Usual: true}
			})
			offer(r, "j")
			r.start()
			for range 50 {
				time.Sleep(time.Second)
				require.LessOrEqual(r, yielded.Load(), int64(len(r.api.Accepted(apidouble.Stream))+maxQueuedItems+1))
			}
		})
	})
	t.Run("bytes", func(t *testing.T) {
		var yielded atomic.Int64
		item := json.RawMessage(`"` + strings.Repeat("x", protocol.MaxChunk-100) + `"`)
		bubble(t, Config{}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
			for sink.Chunk(item) == nil {
				yielded.Add(1)
			}
			return protocol.Outcome{}, nil
		}, func(r *rig) {
			r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
				return &apidouble.Reply{Delay: time.Second, Usual: true}
			})
			offer(r, "j")
			r.start()
			for range 20 {
				time.Sleep(time.Second + time.Millisecond)
				waiting := int(yielded.Load()) - len(r.api.Accepted(apidouble.Stream))
				require.Equal(r, maxQueuedBytes/len(item), waiting, "there is room again when an item is accepted")
			}
		})
	})
	t.Run("bytes of texts that are joined", func(t *testing.T) {
		var yielded atomic.Int64
		item := json.RawMessage(`"` + strings.Repeat("x", 10_000) + `"`)
		bubble(t, Config{StreamBatch: true}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
			for sink.Chunk(item) == nil {
				yielded.Add(1)
			}
			return protocol.Outcome{}, nil
		}, func(r *rig) {
			r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
				return &apidouble.Reply{Delay: time.Hour, Usual: true}
			})
			offer(r, "j")
			r.start()
			time.Sleep(time.Minute)
			taken := int(yielded.Load()) * len(item)
			require.LessOrEqual(r, taken, maxQueuedBytes+len(item))
			require.Greater(r, taken, maxQueuedBytes/2)
		})
	})
}

// What a handler does with its buffer afterwards changes no item.
func TestStream_BufferThatIsUsedAgain(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			bubble(t, Config{StreamBatch: batch}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
				buffer := make([]byte, 0, 100)
				for n := range 10 {
					buffer = fmt.Appendf(buffer[:0], `"%d"`, n)
					if err := sink.Chunk(buffer); err != nil {
						return protocol.Outcome{}, err
					}
				}
				return protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}, nil
			}, func(r *rig) {
				offer(r, "j")
				r.start()
				r.results(time.Minute, 1)
				require.Equal(r, "0123456789", spoken(r, r.api.Accepted(apidouble.Stream)))
			})
		})
	}
}

func TestStream_ItemTooLarge(t *testing.T) {
	big := json.RawMessage(`"` + strings.Repeat("x", protocol.MaxChunk) + `"`)
	bubble(t, Config{}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		_ = sink.Chunk(json.RawMessage(`1`))
		if sink.Chunk(big) == nil {
			return protocol.Outcome{}, errors.New("taken")
		}
		return protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}, nil
	}, func(r *rig) {
		offer(r, "j")
		r.start()
		body := r.results(time.Second, 1)[0].Body
		require.Contains(r, body, fmt.Sprint(len(big)+chunkFrame))
		require.Contains(r, body, fmt.Sprint(protocol.MaxChunk))
		require.Len(r, r.api.Accepted(apidouble.Stream), 1)
	})
}

func TestStream_ThatCannotBePosted(t *testing.T) {
	tests := map[string]struct {
		reply     *apidouble.Reply // nil: the platform has no stream URL
		aggregate bool
		want      string // in the result
		warnings  int
	}{
		"no URL, aggregate":    {nil, true, `"output":[]`, 1},
		"no URL, no aggregate": {nil, false, "the stream could not be posted", 1},
		"400, aggregate":       {&apidouble.Reply{Status: 400}, true, `"output":[]`, 2},
		"400, no aggregate":    {&apidouble.Reply{Status: 400}, false, "the stream could not be posted", 0},
		"404":                  {&apidouble.Reply{Status: 404}, false, "stopped", 2},
		"410":                  {&apidouble.Reply{Status: 410}, true, "stopped", 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{}, counting(50, nil), func(r *rig) {
				r.handler.ready.Aggregate = tt.aggregate
				if tt.reply == nil {
					r.withoutURLs()
				} else {
					r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply { return tt.reply })
				}
				offer(r, "j1", "j2")
				r.start()
				for _, post := range r.results(time.Minute, 2) {
					require.Contains(r, post.Body, tt.want)
				}
				require.LessOrEqual(r, len(r.api.Calls(apidouble.Stream)), 2, "one for each job")
				require.Len(r, r.logs.atLeast(slog.LevelWarn), tt.warnings)
			})
		})
	}
}

// HC-13
func TestProgress_NeverAfterTheEnd(t *testing.T) {
	var leaked atomic.Pointer[protocol.Sink]
	bubble(t, Config{}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		leaked.Store(&sink)
		for i := range 20 {
			sink.Progress(json.RawMessage(fmt.Sprint(i)))
			if i%5 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
		}
		return protocol.Outcome{Output: json.RawMessage(`"end"`)}, nil
	}, func(r *rig) {
		r.api.On(apidouble.Progress, func(apidouble.Call) *apidouble.Reply { // so slow that the end finds one on its way
			return &apidouble.Reply{Delay: 100*time.Millisecond + rand.N(400*time.Millisecond), Usual: true}
		})
		var overtaken atomic.Bool
		r.api.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply {
			overtaken.Store(len(r.api.Accepted(apidouble.Progress)) < len(r.api.Calls(apidouble.Progress)))
			return nil
		})
		offer(r, "j")
		r.start()
		done := r.results(time.Minute, 1)[0]
		require.False(r, overtaken.Load(), "the result waits for the progress that is on its way")
		time.Sleep(2 * time.Second)
		for range 3 {
			(*leaked.Load()).Progress(json.RawMessage(`"late"`))
			require.Error(r, (*leaked.Load()).Chunk(json.RawMessage(`"late"`)))
		}
		time.Sleep(2 * time.Second)
		last := -1
		posts := r.api.Calls(apidouble.Progress)
		require.NotEmpty(r, posts)
		for _, c := range posts {
			require.True(r, c.At.Before(done.At))
			var body struct{ Output int }
			require.NoError(r, json.Unmarshal([]byte(c.Body), &body))
			require.Greater(r, body.Output, last)
			last = body.Output
		}
		require.Less(r, last, 19, "what waits when the job ends is left out")
		require.Len(r, r.logs.atLeast(slog.LevelWarn), 1)
	})
}

// Progress that hangs holds neither the stream nor the result for long.
func TestProgress_HangingPost(t *testing.T) {
	bubble(t, Config{}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		sink.Progress(json.RawMessage(`1`))
		return protocol.Outcome{}, sink.Chunk(json.RawMessage(`2`))
	}, func(r *rig) {
		r.api.On(apidouble.Progress, func(apidouble.Call) *apidouble.Reply {
			return &apidouble.Reply{Delay: time.Hour}
		})
		offer(r, "j")
		r.start()
		r.results(progressLimit+time.Second, 1)
		require.Len(r, r.api.Accepted(apidouble.Stream), 1)
	})
}

// A stream that is cut short is no loss where the result has it all.
func TestStream_ItemTooLargeOfAnAggregate(t *testing.T) {
	bubble(t, Config{MaxChunk: 100}, func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		for _, item := range []string{`1`, `"` + strings.Repeat("x", 100) + `"`, `3`} {
			if err := sink.Chunk(json.RawMessage(item)); err != nil {
				return protocol.Outcome{}, err
			}
		}
		return protocol.Outcome{Output: json.RawMessage(`[1,"x",3]`), Stream: true}, nil
	}, func(r *rig) {
		r.handler.ready.Aggregate = true
		offer(r, "j")
		r.start()
		require.Equal(r, `{"output":[1,"x",3]}`, r.results(time.Second, 1)[0].Body)
		require.Len(r, r.api.Accepted(apidouble.Stream), 1)
		warnings := r.logs.atLeast(slog.LevelWarn)
		require.Len(r, warnings, 1)
		require.Contains(r, warnings[0], "113 bytes, the limit is 100")
	})
}

// The end of a job waits for its last item, however long that takes.
func TestStream_EndNeverOvertakes(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			bubble(t, Config{StreamBatch: batch}, counting(5, nil), func(r *rig) {
				r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
					return &apidouble.Reply{Delay: 30 * time.Second, Usual: true}
				})
				offer(r, "j")
				r.start()
				done := r.results(5*time.Minute, 1)[0]
				chunks := r.api.Accepted(apidouble.Stream)
				require.Len(r, chunks, 5)
				require.GreaterOrEqual(r, done.At.Sub(chunks[4].At), 30*time.Second)
			})
		})
	}
}

// An item that is never accepted fails the job in the end, and what came before it is not posted again.
func TestStream_GivenUp(t *testing.T) {
	bubble(t, Config{}, counting(5, nil), func(r *rig) {
		r.api.On(apidouble.Stream, func(c apidouble.Call) *apidouble.Reply {
			if c.Body == `{"output":2}` {
				return &apidouble.Reply{Status: 500}
			}
			return nil
		})
		offer(r, "j")
		r.start()
		body := r.results(chunkBudget+2*maxRetryWait, 1)[0].Body
		require.Contains(r, body, "the stream could not be posted: given up after 2h0m0s: job-stream: the platform answered 500")
		require.Len(r, r.api.Accepted(apidouble.Stream), 2)
	})
}
