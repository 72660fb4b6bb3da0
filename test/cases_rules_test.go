package test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// LE-10: a job that runs too long fails as hosted, its handler is stopped, and nothing that comes later changes that. One that
// waits too long never starts.
func TestLE10TimeLimits(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args            []string
		slow, forgotten string // their last states; none is 404
	}{
		"as hosted":     {nil, "FAILED", ""},
		"the other way": {[]string{"--disputed", "execution-timeout=TIMED_OUT", "--disputed", "ttl=TIMED_OUT"}, "TIMED_OUT", "TIMED_OUT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveHandler(t, "slow_file.py", append(row.args,
				"--sweep-interval", "50ms", "--min-execution-timeout", "100ms", "--min-ttl", "100ms")...)
			submit := func(seconds, file, policy string) string {
				var j job
				server.call(http.MethodPost, "/run", `{"input":{"seconds":`+seconds+`,"file":`+strconv.Quote(file)+`},"policy":`+policy+`}`, &j)
				return j.ID
			}
			dir := t.TempDir()
			slow := submit("3", filepath.Join(dir, "slow"), `{"executionTimeout":1000}`)
			forgotten := submit("0", filepath.Join(dir, "forgotten"), `{"ttl":300}`)

			j := server.await(slow)
			require.Equal(t, row.slow, j.Status)
			require.Equal(t, "executionTimeout exceeded", j.Error)
			var gone job
			err := server.try(http.MethodGet, "/status/"+forgotten, "", &gone)
			require.Equal(t, row.forgotten == "", err != nil)
			require.Equal(t, row.forgotten, gone.Status)

			next := submit("0", filepath.Join(dir, "next"), `{}`)
			require.Equal(t, "COMPLETED", server.await(next).Status, "the worker is free for others")
			time.Sleep(2500 * time.Millisecond) // by then both would have written
			require.NoFileExists(t, filepath.Join(dir, "slow"))
			require.NoFileExists(t, filepath.Join(dir, "forgotten"))
			require.FileExists(t, filepath.Join(dir, "next"))
			require.Equal(t, row.slow, server.status(slow).Status)
		})
	}
}

// LE-05, LE-06: the receiver of a webhook reads the whole job, also of one that failed.
func TestLE05Webhooks(t *testing.T) {
	t.Parallel()
	bodies := make(chan []byte, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- body
	}))
	defer hook.Close()
	for file, row := range map[string]struct{ status, input string }{
		"async.py": {"COMPLETED", `{"items":["a"],"seconds":0.2}`},
		"boom.py":  {"FAILED", `{"n":1}`},
	} {
		server := serveHandler(t, file)
		var j job
		server.call(http.MethodPost, "/run", `{"input":`+row.input+`,"webhook":"`+hook.URL+`"}`, &j)
		var got struct {
			job
			Input   json.RawMessage `json:"input"`
			Webhook string          `json:"webhook"`
		}
		select {
		case body := <-bodies:
			require.NoError(t, json.Unmarshal(body, &got))
		case <-time.After(patience):
			require.Fail(t, "no webhook")
		}
		require.Equal(t, j.ID, got.ID)
		require.Equal(t, row.status, got.Status)
		require.JSONEq(t, row.input, string(got.Input))
		require.Equal(t, hook.URL, got.Webhook)
		require.Equal(t, row.status == "FAILED", got.Error != "")
		require.Equal(t, row.status == "COMPLETED", got.Output != nil)
		require.NotNil(t, got.DelayTime)
		require.NotNil(t, got.ExecutionTime)
		if row.status == "COMPLETED" {
			require.True(t, *got.ExecutionTime >= 150 && *got.ExecutionTime < 1000+int(patience.Milliseconds()), *got.ExecutionTime)
		}
	}
	require.Empty(t, bodies)
}

// SE-02: what listens on this machine only is not for web pages, and keys are asked for on every route.
func TestSE02WhoMayCall(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("secret\n"), 0o600))
	server := serve(t, "--no-worker", "--api-key-file", key, "--cors", "https://app.example.com")
	for _, row := range []struct {
		path, key, host, origin string
		status                  int
	}{
		{"/v2/local/health", "secret", "", "", 200},
		{"/v2/local/health", "", "", "", 401},
		{"/_emulator/faults", "secret", "", "", 200},
		{"/_emulator/faults", "", "", "", 401},
		{"/_emulator/logs/j1", "", "", "", 401},
		{"/v2/local/job-take/w1", "", "", "", 401},
		{"/v2/local/health", "secret", "evil.example.com", "", 403},
		{"/v2/local/health", "secret", "", "https://evil.example.com", 403},
		{"/v2/local/health", "secret", "", "https://app.example.com", 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.base[:len(server.base)-len("/v2")]+row.path, http.NoBody)
		require.NoError(t, err)
		if row.key != "" {
			req.Header.Set("Authorization", "Bearer "+row.key)
		}
		if row.origin != "" {
			req.Header.Set("Origin", row.origin)
		}
		req.Host = row.host
		resp, err := httpClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, row.status, resp.StatusCode, "%+v", row)
	}
}

// SE-01: beyond this machine webhooks go to public addresses only, unless a flag says otherwise.
func TestSE01WebhooksOfAnOpenServer(t *testing.T) {
	t.Parallel()
	visits := make(chan struct{}, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits <- struct{}{} }))
	defer hook.Close()
	open := []string{"--handler", "echo", "--host", "0.0.0.0", "--insecure"}
	submit := func(s *server) {
		var j job
		s.call(http.MethodPost, "/runsync", `{"input":1,"webhook":"`+hook.URL+`"}`, &j)
		require.Equal(t, "COMPLETED", j.Status, "the job has nothing to do with it")
	}
	strict := serve(t, open...)
	submit(strict)
	eventually(t, func() bool { return strings.Contains(strict.stderr.String(), "webhook refused: 127.0.0.1") }, "no word of the refusal")
	require.Empty(t, visits)
	submit(serve(t, append(open, "--allow-private-webhooks")...))
	eventually(t, func() bool { return len(visits) == 1 }, "no webhook")
}

// Faults out of a file go wrong from the first call on.
func TestFaultsFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "faults.yaml")
	require.NoError(t, os.WriteFile(file, []byte("seed: 7\nrules:\n  - route: health\n    status: 503\n    times: 1\n"), 0o600))
	server := serve(t, "--no-worker", "--faults", file)
	_, err := server.tryHealth()
	require.ErrorContains(t, err, "503")
	_, err = server.tryHealth()
	require.NoError(t, err)
}
