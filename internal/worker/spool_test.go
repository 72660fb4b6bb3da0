package worker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/worker/apidouble"
)

// files are large outputs that are counted while they are open.
type files struct{ made, open atomic.Int64 }

type file struct {
	*strings.Reader
	of *files
}

func (file) Write([]byte) (int, error) { return 0, errors.New("it is written") }

func (f file) Close() error {
	f.of.open.Add(-1)
	return nil
}

func (f *files) outcome(output string) protocol.Outcome {
	f.made.Add(1)
	f.open.Add(1)
	return protocol.Outcome{Spool: file{strings.NewReader(output), f}}
}

// However a job with a large output ends: what is posted is the output, and its file is closed.
func TestSpool_EveryEnd(t *testing.T) {
	large := `"` + strings.Repeat("x", protocol.LargeOutput) + `"`
	sick := "CUDA error: device-side assert triggered"
	for _, tt := range []struct {
		name   string
		cfg    Config
		ends   func(protocol.Outcome) protocol.Outcome
		takes  time.Duration // whatever the job is told
		during func(*rig)
		want   []string // bodies that are accepted; a beginning is enough
	}{
		{name: "accepted", want: []string{`{"output":` + large + `}`}},
		{name: "after tries that fail", during: func(r *rig) {
			r.api.Script(apidouble.Done, apidouble.Reply{Status: 503}, apidouble.Reply{Drop: true}, apidouble.Reply{Status: 503})
		}, want: []string{`{"output":` + large + `}`}},
		{name: "too large", cfg: Config{MaxResult: protocol.LargeOutput}, want: []string{`{"error":"the result is too large: 1048589 bytes, the limit is 1048576"}`}},
		{name: "too large, with a place for it", cfg: Config{MaxResult: protocol.LargeOutput, Offload: &elsewhere{}}, want: []string{`{"output":{"at":"j"}}`}},
		{name: "just not too large", cfg: Config{MaxResult: protocol.LargeOutput + 13}, want: []string{`{"output":` + large + `}`}},
		{name: "refused", during: func(r *rig) { r.api.Script(apidouble.Done, apidouble.Reply{Status: 413}) }, want: []string{`{"error":"the result of 1048589 bytes could not be delivered`}},
		{name: "not wanted", during: func(r *rig) { r.api.Script(apidouble.Done, apidouble.Reply{Status: 410}) }},
		{name: "of a job that failed", ends: func(o protocol.Outcome) protocol.Outcome { o.Error = "no"; return o }, want: []string{`{"output":` + large + `,"error":"no"}`}},
		{name: "for a fresh worker", ends: func(o protocol.Outcome) protocol.Outcome { o.Refresh = true; return o }, want: []string{`{"output":` + large + `,"stopPod":true}`}},
		{name: "too late", cfg: Config{JobTimeout: time.Second}, takes: 2 * time.Second, want: []string{`{"error":"job timeout`}},
		{name: "of a job that was stopped", takes: 2 * time.Second, during: func(r *rig) {
			time.AfterFunc(time.Second, func() { r.api.StopJobs("j") })
		}},
		{name: "of a job that was stopped while it was delivered", during: func(r *rig) {
			down(r)
			time.AfterFunc(3*time.Second, func() { r.api.StopJobs("j") })
		}},
		{name: "of a worker that ends now", during: func(r *rig) {
			down(r)
			time.AfterFunc(3*time.Second, r.abort)
		}},
		{name: "with a GPU that has failed", ends: func(o protocol.Outcome) protocol.Outcome { o.Error = sick; return o }, want: []string{`{"output":` + large + `,"error":"` + sick + `"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f files
			handle := func(context.Context, protocol.Job, protocol.Sink) (protocol.Outcome, error) {
				time.Sleep(tt.takes)
				outcome := f.outcome(large)
				if tt.ends != nil {
					outcome = tt.ends(outcome)
				}
				return outcome, nil
			}
			bubble(t, tt.cfg, handle, func(r *rig) {
				r.start()
				synctest.Wait()
				if tt.during != nil {
					tt.during(r)
				}
				offer(r, "j")
				time.Sleep(time.Minute)
				accepted := r.api.Accepted(apidouble.Done)
				var got []string
				for i, call := range accepted { // a message must not quote megabytes
					if i < len(tt.want) && strings.HasPrefix(call.Body, tt.want[i]) {
						got = append(got, tt.want[i])
						continue
					}
					got = append(got, call.Body[:min(len(call.Body), 100)])
				}
				require.Equal(r, tt.want, got)
				require.Positive(r, f.made.Load())
				require.Zero(r, f.open.Load(), "every file is closed")
			})
		})
	}
}
