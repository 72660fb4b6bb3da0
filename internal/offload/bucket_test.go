package offload

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/offload/bucketdouble"
)

func newBucket(t *testing.T, s *bucketdouble.Storage, changed map[string]string) *Bucket {
	t.Helper()
	cfg, err := config.BucketFrom(config.Overlay(func(string) (string, bool) { return "", false }, s.Env()))
	require.NoError(t, err)
	for name, value := range changed {
		switch name {
		case "path":
			cfg.Endpoint = cfg.Endpoint.ResolveReference(&url.URL{Path: value})
		case "id":
			cfg.AccessKeyID = value
		case "secret":
			cfg.SecretAccessKey = value
		case "region":
			cfg.Region = value
		}
	}
	b := New(cfg)
	b.firstRetry = time.Millisecond
	return b
}

func offload(b *Bucket, job, output string) (json.RawMessage, error) {
	return b.Offload(context.Background(), job, strings.NewReader(output), int64(len(output)))
}

// stored is the small output that clients get.
type stored struct {
	URL         string `json:"url"`
	Size        int    `json:"size"`
	ContentType string `json:"content_type"`
	SHA256      string `json:"sha256"`
}

func decode(t *testing.T, small json.RawMessage) stored {
	t.Helper()
	var out map[string]stored
	dec := json.NewDecoder(strings.NewReader(string(small)))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&out))
	require.Equal(t, []string{"offloaded"}, slices.Collect(maps.Keys(out)))
	return out["offloaded"]
}

func fetch(t *testing.T, signed string) (status int, contentType, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(signed)
	require.NoError(t, err)
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(content)
}

func TestOffload(t *testing.T) {
	for name, job := range map[string]string{
		"an id of the platform": "8f6a1b1e-4d8c-4c62-9d3d-2a1f-u1",
		"an odd id":             "a+b/../c d?ü",
	} {
		t.Run(name, func(t *testing.T) {
			s := bucketdouble.New(t)
			output := `"` + strings.Repeat("x&", 1<<20) + `"`
			small, err := offload(newBucket(t, s, nil), job, output)
			require.NoError(t, err)
			require.NotContains(t, string(small), `\u`, "people copy URLs")
			got := decode(t, small)
			sum := sha256.Sum256([]byte(output))
			require.Equal(t, stored{URL: got.URL, Size: len(output), ContentType: "application/json", SHA256: hex.EncodeToString(sum[:])}, got)
			require.Contains(t, got.URL, "/"+time.Now().UTC().Format("01-06")+"/"+plain(job)+"/"+got.SHA256[:16]+".json?")
			require.Contains(t, got.URL, "X-Amz-Expires=604800")

			status, contentType, body := fetch(t, got.URL)
			require.Equal(t, http.StatusOK, status, body)
			require.Equal(t, "application/json", contentType)
			require.Equal(t, output, body)
			status, _, _ = fetch(t, strings.Replace(got.URL, ".json", ".jsonl", 1))
			require.Equal(t, http.StatusForbidden, status, "the signature holds for one object")
		})
	}
}

// An upload that is repeated leaves nothing behind.
func TestOffload_AgainToTheSamePlace(t *testing.T) {
	s := bucketdouble.New(t)
	b := newBucket(t, s, nil)
	for range 2 {
		_, err := offload(b, "j", `"x"`)
		require.NoError(t, err)
	}
	_, err := offload(b, "j", `"y"`)
	require.NoError(t, err)
	require.Equal(t, 3, s.Puts())
	require.Len(t, s.Objects(), 2)
}

func TestOffload_Failures(t *testing.T) {
	always := func(status int) func(int, *http.Request) int { return func(int, *http.Request) int { return status } }
	first := func(n, status int) func(int, *http.Request) int {
		return func(put int, _ *http.Request) int {
			if put <= n {
				return status
			}
			return 0
		}
	}
	drop := func(put int, _ *http.Request) int {
		if put == 1 {
			panic(http.ErrAbortHandler)
		}
		return 0
	}
	tests := map[string]struct {
		changed map[string]string
		hook    func(int, *http.Request) int
		puts    int
		wantErr string
	}{
		"500, then well":              {hook: first(1, 500), puts: 2},
		"503, as often as is borne":   {hook: first(maxTries-1, 503), puts: maxTries},
		"429, then well":              {hook: first(1, 429), puts: 2},
		"a broken connection":         {hook: drop, puts: 2},
		"500 for ever":                {hook: always(500), puts: maxTries, wantErr: ".json: 500 Internal Server Error: InternalError: We encountered"},
		"no such bucket":              {changed: map[string]string{"path": "/other"}, puts: 1, wantErr: "404 Not Found: NoSuchBucket: The specified bucket does not exist"},
		"the key of somebody else":    {changed: map[string]string{"id": "AKSOMEBODYELSE"}, puts: 1, wantErr: "403 Forbidden: SignatureDoesNotMatch: signed for [REDACTED]/"},
		"a wrong key":                 {changed: map[string]string{"secret": "not-the-secret"}, puts: 1, wantErr: "403 Forbidden: SignatureDoesNotMatch: The request signature"},
		"another region":              {changed: map[string]string{"region": ""}, puts: 1, wantErr: "SignatureDoesNotMatch: signed for [REDACTED]/"},
		"a redirect is not followed":  {hook: always(307), puts: 1, wantErr: "307 Temporary Redirect"},
		"a refusal of another server": {hook: always(413), puts: 1, wantErr: "413 Request Entity Too Large"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := bucketdouble.New(t)
			s.On(tt.hook)
			b := newBucket(t, s, tt.changed)
			small, err := offload(b, "j", strings.Repeat("1", 1<<20))
			require.Equal(t, tt.puts, s.Puts())
			if tt.wantErr != "" {
				require.ErrorContains(t, err, tt.wantErr)
				require.NotContains(t, err.Error(), b.keys.AccessKeyID)
				require.NotContains(t, err.Error(), b.keys.SecretAccessKey)
				require.Empty(t, s.Objects())
				return
			}
			require.NoError(t, err)
			_, _, body := fetch(t, decode(t, small).URL)
			require.Len(t, body, 1<<20)
		})
	}
}

// answering is a server that answers each request with the same words once it has the headers, and does not read on.
func answering(t *testing.T, answer string) (place *url.URL, asked *atomic.Int64) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	asked = new(atomic.Int64)
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err = http.ReadRequest(bufio.NewReader(conn)); err == nil {
				asked.Add(1)
				_, _ = io.WriteString(conn, answer)
			}
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = listener.Close(); ended.Wait() })
	return &url.URL{Scheme: "http", Host: listener.Addr().String()}, asked
}

// An answer that does not wait for the body counts by its status; none of them means that the output is stored.
func TestOffload_AnswerBeforeTheBody(t *testing.T) {
	for name, tt := range map[string]struct {
		status  string
		tries   int64
		wantErr string
	}{
		"a redirect": {"301 Moved Permanently", 1, ".json: 301 Moved Permanently"},
		"a refusal":  {"403 Forbidden", 1, ".json: 403 Forbidden"},
		"a success":  {"200 OK", maxTries, ".json: 200 OK, answered before it had the output"},
	} {
		t.Run(name, func(t *testing.T) {
			place, asked := answering(t, "HTTP/1.1 "+tt.status+"\r\nContent-Length: 0\r\n\r\n")
			b := newBucket(t, bucketdouble.New(t), nil)
			b.root = place
			_, err := offload(b, "j", strings.Repeat("1", 16<<20)) // more than buffers take
			require.ErrorContains(t, err, tt.wantErr)
			require.Equal(t, tt.tries, asked.Load())
		})
	}
}

// stall waits until the client has gone, which the server sees once it has read all.
func stall(r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// A storage that says nothing is waited for so long and no longer.
func TestOffload_Stall(t *testing.T) {
	s := bucketdouble.New(t)
	s.On(func(_ int, r *http.Request) int { stall(r); return 500 })
	b := newBucket(t, s, nil)
	b.tryLimit = 10 * time.Millisecond
	_, err := offload(b, "j", "1")
	require.ErrorContains(t, err, "no answer after 10ms")
	require.Empty(t, s.Objects())
}

func TestOffload_NobodyThere(t *testing.T) {
	s := bucketdouble.New(t)
	b := newBucket(t, s, nil)
	b.root = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	_, err := offload(b, "j", "1")
	require.ErrorContains(t, err, "connection refused")
}

// Whoever calls can end it, between tries too.
func TestOffload_Cancelled(t *testing.T) {
	for name, status := range map[string]int{"in a try": 0, "between two": 500} {
		t.Run(name, func(t *testing.T) {
			s := bucketdouble.New(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			stopped := errors.New("stopped")
			s.On(func(_ int, r *http.Request) int {
				if status == 0 {
					cancel(stopped)
					stall(r)
				} else {
					time.AfterFunc(10*time.Millisecond, func() { cancel(stopped) })
				}
				return status
			})
			b := newBucket(t, s, nil)
			b.firstRetry = time.Minute
			_, err := b.Offload(ctx, "j", strings.NewReader("1"), 1)
			require.ErrorIs(t, err, stopped)
			require.Equal(t, 1, s.Puts())
		})
	}
}

func TestRegion(t *testing.T) {
	for host, want := range map[string]string{
		"s3.us-west-2.amazonaws.com":          "us-west-2",
		"b.s3.us-west-2.amazonaws.com":        "us-west-2",
		"s3.amazonaws.com":                    "set",
		"b.s3.amazonaws.com":                  "set",
		"b.s3.eu-central-003.backblazeb2.com": "eu-central-003",
		"s3.wasabisys.com":                    "set",
		"acct.r2.cloudflarestorage.com":       "set",
		"nyc3.digitaloceanspaces.com":         "nyc3",
		"b.nyc3.digitaloceanspaces.com":       "nyc3",
		"localhost":                           "set",
		"127.0.0.1":                           "set",
	} {
		require.Equal(t, want, region(host, "set"), host)
	}
	require.Equal(t, "us-east-1", region("localhost", ""))
}
