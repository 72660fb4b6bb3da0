package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// saying yields items, one in each interval.
func saying(every time.Duration, items ...string) handleFunc {
	return func(_ context.Context, _ protocol.Job, sink protocol.Sink) (protocol.Outcome, error) {
		for _, item := range items {
			if err := sink.Chunk(json.RawMessage(item)); err != nil {
				return protocol.Outcome{}, err
			}
			time.Sleep(every)
		}
		return protocol.Outcome{Output: json.RawMessage(`[]`), Stream: true}, nil
	}
}

// RD-08
func TestBatch_TokensArePostedTogether(t *testing.T) {
	tokens := make([]string, 5000)
	var want strings.Builder
	for i := range tokens {
		text := fmt.Sprintf("data: {\"token\":\"é%d\"}\n\n", i)
		tokens[i] = string(protocol.Quote(text))
		want.WriteString(text)
	}
	bubble(t, Config{StreamBatch: true}, saying(time.Millisecond, tokens...), func(r *rig) {
		offer(r, "j")
		began := time.Now()
		r.start()
		r.results(6*time.Second, 1)
		chunks := r.api.Accepted(apidouble.Stream)
		require.Less(r, chunks[0].At.Sub(began), 150*time.Millisecond)
		require.LessOrEqual(r, len(chunks), 5*20)
		require.Equal(r, want.String(), spoken(r, chunks))
	})
}

// spoken is the text that a client puts together.
func spoken(r *rig, chunks []apidouble.Call) string {
	var text strings.Builder
	for _, c := range chunks {
		var body struct{ Output string }
		require.NoError(r, json.Unmarshal([]byte(c.Body), &body), c.Body)
		text.WriteString(body.Output)
	}
	return text.String()
}

func TestBatch_WhatIsJoined(t *testing.T) {
	long := `"` + strings.Repeat("x", 60) + `"`
	tests := map[string]struct {
		cfg   Config
		every time.Duration
		items []string
		want  []string
	}{
		"nothing, unless it is asked for": {Config{}, 0, []string{`"a"`, `"b"`, `"c"`}, []string{`"a"`, `"b"`, `"c"`}},
		"texts":                           {Config{StreamBatch: true}, time.Millisecond, []string{`"a"`, `"b"`, `"c"`}, []string{`"a"`, `"bc"`}},
		"nothing that comes slowly":       {Config{StreamBatch: true}, time.Second, []string{`"a"`, `"b"`, `"c"`}, []string{`"a"`, `"b"`, `"c"`}},
		"no other values":                 {Config{StreamBatch: true}, time.Millisecond, []string{`"a"`, `1`, `"b"`, `"c"`, `{"d":"e"}`, `"f"`}, []string{`"a"`, `1`, `"bc"`, `{"d":"e"}`, `"f"`}},
		"no more than fits into a post":   {Config{StreamBatch: true, MaxChunk: 100}, time.Millisecond, []string{`"a"`, long, long, `"b"`}, []string{`"a"`, long, long[:61] + `b"`}},
		"escapes":                         {Config{StreamBatch: true}, time.Millisecond, []string{`""`, `"\""`, `"\\"`, `"\ud83d"`, `"\ude00"`}, []string{`""`, `"\"\\\ud83d\ude00"`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, tt.cfg, saying(tt.every, tt.items...), func(r *rig) {
				offer(r, "j")
				r.start()
				r.results(time.Minute, 1)
				var got []string
				for _, c := range r.api.Accepted(apidouble.Stream) {
					got = append(got, strings.TrimSuffix(strings.TrimPrefix(c.Body, `{"output":`), `}`))
				}
				require.Equal(r, tt.want, got)
			})
		})
	}
}

// What is joined while a post fails goes out in order, and once.
func TestBatch_PostsThatFail(t *testing.T) {
	items := make([]string, 300)
	var want strings.Builder
	for i := range items {
		items[i] = fmt.Sprintf(`"%d,"`, i)
		fmt.Fprintf(&want, "%d,", i)
	}
	bubble(t, Config{StreamBatch: true}, saying(10*time.Millisecond, items...), func(r *rig) {
		n := 0
		r.api.On(apidouble.Stream, func(apidouble.Call) *apidouble.Reply {
			if n++; n%2 == 0 {
				return &apidouble.Reply{Status: 503}
			}
			return nil
		})
		offer(r, "j")
		r.start()
		r.results(10*time.Minute, 1)
		require.Equal(r, want.String(), spoken(r, r.api.Accepted(apidouble.Stream)))
	})
}
