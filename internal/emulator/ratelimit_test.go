package emulator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
)

// The published table, one operation a row. Status and status-sync share a limit; whatever is not listed has none.
func TestRateLimits(t *testing.T) {
	for path, limit := range map[string]int{
		"POST /run": 1000, "POST /runsync": 2000, "GET /status/x": 2000, "GET /status-sync/x": 2000, "GET /stream/x": 2000,
		"POST /cancel/x": 100, "POST /purge-queue": 2, "GET /requests": 10, "POST /openai/v1/completions": 2000,
		"GET /health": 0, "POST /retry/x": 0, "GET /batch": 0,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			r := newRig(t, emulator.Options{RateLimits: true, Now: c.now, Endpoints: []string{"local", "other"}})
			method, path, _ := strings.Cut(path, " ")
			call := func(endpoint string) (int, string) { return r.call(method, "/v2/"+endpoint+path, "[]") } // nowhere a job
			for n := range limit {
				code, _ := call("local")
				require.NotEqual(t, 429, code, "call %d", n)
			}
			code, answer := call("local")
			if limit == 0 {
				require.NotEqual(t, 429, code)
				return
			}
			require.Equal(t, 429, code)
			name := strings.TrimSuffix(strings.Split(path, "/")[1], "-sync")
			require.Equal(t, fmt.Sprintf(`{"status":429,"title":"Too Many Requests","detail":"rate limit exceeded: %d requests in 10s to /%s"}`, limit, name), answer)
			code, _ = call("other")
			require.NotEqual(t, 429, code, "each endpoint has limits of its own")
			c.pass(10*time.Second - 1)
			code, _ = call("local")
			require.Equal(t, 429, code)
			c.pass(1)
			code, _ = call("local")
			require.NotEqual(t, 429, code)
		})
	}
}

func TestRateLimitOfConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, emulator.Options{RateLimits: true})
		held := make(chan struct{})
		for range 400 {
			go func() {
				defer func() { held <- struct{}{} }()
				_, _, _ = r.try(context.Background(), "POST", "/v2/local/runsync", `{"input":1}`)
			}()
		}
		synctest.Wait()
		req, err := http.NewRequest(http.MethodPost, "http://local/v2/local/runsync", strings.NewReader(`{"input":1}`))
		require.NoError(t, err)
		res, err := r.http.Do(req)
		require.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, 429, res.StatusCode)
		require.Contains(t, string(body), "400 requests at a time to /runsync")
		require.Equal(t, "1", res.Header.Get("Retry-After"))
		for range 400 {
			<-held
		}
		code, _ := r.call("POST", "/v2/local/runsync?wait=1000", `{"input":1}`)
		require.Equal(t, 200, code)
	})
}

func TestNoRateLimits(t *testing.T) {
	r := newRig(t, emulator.Options{})
	for range 10 {
		r.ok("POST", "/purge-queue", "")
	}
}
