package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/protocol"
)

// network is an Emulator behind real connections, with a count of what its workers did.
type network struct {
	url      string
	client   *http.Client
	starts   atomic.Int32
	mu       sync.Mutex
	accepted map[string]int // results by job
}

func newNetwork(t *testing.T, o emulator.Options) *network {
	o.Log = slog.New(slog.DiscardHandler)
	e, err := emulator.New(o)
	require.NoError(t, err)
	srv := httptest.NewServer(e.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	n := &network{url: srv.URL + "/v2/local", client: srv.Client(), accepted: map[string]int{}}
	t.Cleanup(func() {
		cancel()
		<-done
		require.NoError(t, e.Close())
		srv.Close()
		n.client.CloseIdleConnections()
	})
	return n
}

func (n *network) do(ctx context.Context, method, path, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, n.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	res, err := n.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, b, err
}

// work takes and finishes jobs until ctx ends. A worker that drops lets half of its takes break off.
func (n *network) work(ctx context.Context, name string, drops bool) {
	for i := 0; ctx.Err() == nil; i++ {
		call, cancel := ctx, context.CancelFunc(func() {})
		if drops && i%2 == 0 {
			call, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(2000))*time.Microsecond)
		}
		code, answer, err := n.do(call, "GET", "/job-take-batch/"+name+"?batch_size=4&job_in_progress=0", "")
		cancel()
		if err != nil || code != http.StatusOK {
			continue
		}
		var jobs []struct {
			ID    string
			Input json.RawMessage
		}
		if json.Unmarshal(answer, &jobs) != nil {
			continue
		}
		for _, job := range jobs {
			n.starts.Add(1)
			code, _, err := n.do(context.Background(), "POST", "/job-done/"+name+"/"+job.ID+"?isStream=false", `{"output":`+string(job.Input)+`}`)
			if err == nil && code == http.StatusOK {
				n.mu.Lock()
				n.accepted[job.ID]++
				n.mu.Unlock()
			}
		}
	}
}

// submit makes 500 calls from 50 clients. Half of the connections break off at some moment; the
// other half must be answered.
func (n *network) submit(t *testing.T) {
	var wg sync.WaitGroup
	for c := range 50 {
		wg.Go(func() {
			for i := range 10 {
				input := fmt.Sprintf(`{"client":%d,"call":%d}`, c, i)
				if i%2 == 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(5000))*time.Microsecond)
					_, _, _ = n.do(ctx, "POST", "/runsync", `{"input":`+input+`}`)
					cancel()
					continue
				}
				code, answer, err := n.do(t.Context(), "POST", "/runsync", `{"input":`+input+`}`)
				if err != nil || code != http.StatusOK || !strings.Contains(string(answer), `"output":`+input+`,"`) {
					t.Errorf("a kept call: %d %s %v", code, answer, err)
				}
			}
		})
	}
	wg.Wait()
}

// counts waits until every accepted job has ended and returns their number.
func (n *network) counts(t *testing.T) (ended int) {
	require.Eventually(t, func() bool {
		var h struct {
			Jobs struct{ Completed, Failed, InProgress, InQueue int }
		}
		_, answer, err := n.do(t.Context(), "GET", "/health", "")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(answer, &h))
		require.Zero(t, h.Jobs.Failed)
		ended = h.Jobs.Completed
		return h.Jobs.InProgress+h.Jobs.InQueue == 0
	}, 30*time.Second, 10*time.Millisecond)
	return ended
}

// A body that is too large is read away, so that its sender sees the refusal and not a reset.
func TestRefusalsArriveOverTheNetwork(t *testing.T) {
	n := newNetwork(t, emulator.Options{})
	for path, limit := range map[string]int{"/run": protocol.MaxRunBody, "/job-done/w/j?": protocol.MaxResult, "/job-stream/w/j?": protocol.MaxChunk} {
		code, answer, err := n.do(t.Context(), "POST", path, `{"input":"`+strings.Repeat("x", limit)+`"}`)
		require.NoError(t, err, path)
		require.Equal(t, http.StatusBadRequest, code, path)
		require.Contains(t, string(answer), "exceeded max body size", path)
	}
}

func TestDroppedConnections(t *testing.T) {
	for name, drops := range map[string]bool{"of clients": false, "of clients and workers": true} {
		t.Run(name, func(t *testing.T) {
			o := emulator.Options{TakeHold: 50 * time.Millisecond}
			if drops { // an answer can get lost after it was written: only the lease brings its jobs back
				o.Lease, o.MaxRetries, o.SweepEvery = 500*time.Millisecond, 100, 20*time.Millisecond
			}
			n := newNetwork(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for w := range 4 {
				wg.Go(func() { n.work(ctx, fmt.Sprintf("w%d", w), drops) })
			}
			n.submit(t)
			ended := n.counts(t)
			cancel()
			wg.Wait()

			require.GreaterOrEqual(t, ended, 250)
			require.Len(t, n.accepted, ended)
			for id, times := range n.accepted {
				require.Equal(t, 1, times, "job %s has two accepted ends", id)
			}
			if !drops {
				require.EqualValues(t, ended, n.starts.Load(), "a job was started twice, or never")
			}
		})
	}
}
