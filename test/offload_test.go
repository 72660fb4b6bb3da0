package test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/offload/bucketdouble"
	"runpodctl-worker/internal/worker/apidouble"
)

// largeHandler returns a text of so many letters.
const largeHandler = `
import runpod
runpod.serverless.start({"handler": lambda job: "x" * job["input"]})
`

func writeLargeHandler(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "large.py")
	require.NoError(t, os.WriteFile(file, []byte(largeHandler), 0o600))
	return file
}

// offloaded is what clients get of an output that is elsewhere.
type offloaded struct {
	URL         string `json:"url"`
	Size        int    `json:"size"`
	ContentType string `json:"content_type"`
	SHA256      string `json:"sha256"`
}

// requireFetched checks that an output of so many letters lies where it is said to be.
func requireFetched(t *testing.T, output json.RawMessage, letters int) {
	t.Helper()
	at := decode[map[string]offloaded](t, output)["offloaded"]
	body := get(t, at.URL)
	require.Equal(t, `"`+strings.Repeat("x", letters)+`"`, body)
	sum := sha256.Sum256([]byte(body))
	require.Equal(t, offloaded{at.URL, letters + 2, "application/json", hex.EncodeToString(sum[:])}, at)
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", body)
	return string(body)
}

func TestRunOffloadsLargeOutputs(t *testing.T) {
	t.Parallel()
	s := bucketdouble.New(t)
	w := runCommand(t, apidouble.New(t), s.Env(), "--python", python(t), "--handler", writeLargeHandler(t), "--offload-outputs")
	const limit = 20_000_000 - len(`{"output":""}`)
	w.Offer(`{"id":"fits","input":19999987}`)
	require.Len(t, w.result(t, "fits").Output, limit+2)
	require.Zero(t, s.Puts())
	w.Offer(`{"id":"larger","input":19999988}`, `{"id":"large","input":25000000}`)
	requireFetched(t, w.result(t, "larger").Output, limit+1)
	requireFetched(t, w.result(t, "large").Output, 25_000_000)
	require.Equal(t, 2, s.Puts())
}

// The job says why, the log does too, and neither shows a key.
func TestRunOffloadWithAWrongKey(t *testing.T) {
	t.Parallel()
	s := bucketdouble.New(t)
	env := append(s.Env(), "BUCKET_SECRET_ACCESS_KEY=planted-wrong-secret", "RUNPODCTL_WORKER_LOG_FORMAT=text")
	w := runCommand(t, apidouble.New(t), env, "--python", python(t), "--handler", writeLargeHandler(t), "--offload-outputs", "--max-result", "1MB")
	w.Offer(`{"id":"j","input":1000000}`)
	text := w.result(t, "j").errorText(t)
	require.Contains(t, text, "the result is too large: 1000013 bytes, the limit is 1000000; it could not be uploaded: PUT "+s.URL)
	require.Contains(t, text, "403 Forbidden: SignatureDoesNotMatch")
	for _, shown := range []string{text, w.stderr.String()} {
		require.NotContains(t, shown, "planted-wrong-secret")
		require.NotContains(t, shown, bucketdouble.KeyID)
	}
}

// A worker that is killed on the way loses nothing, and what is uploaded is uploaded once.
func TestRunOffloadKilled(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		upload func(put int, r *http.Request) int
		puts   int
	}{
		"in the upload": {puts: 2, upload: func(put int, r *http.Request) int {
			if put == 1 {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			}
			return 0
		}},
		"between upload and post": {puts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d, state := bucketdouble.New(t), apidouble.New(t), t.TempDir()
			s.On(row.upload)
			d.On(apidouble.Done, func(apidouble.Call) *apidouble.Reply { return &apidouble.Reply{Status: http.StatusServiceUnavailable} })
			args := []string{"--python", python(t), "--handler", writeLargeHandler(t), "--offload-outputs", "--max-result", "1MB", "--state-dir", state}
			w := runCommand(t, d, s.Env(), args...)
			w.Offer(`{"id":"j","input":3000000}`)
			eventually(t, func() bool { return s.Puts() == 1 && (row.upload != nil || len(w.results("j")) > 0) }, "no upload")
			w.kill(t)
			d.On(apidouble.Done, nil)

			w = runCommand(t, d, s.Env(), args...)
			eventually(t, func() bool { return len(d.Accepted(apidouble.Done)) == 1 }, "not delivered")
			requireFetched(t, decode[result](t, d.Accepted(apidouble.Done)[0].Body).Output, 3_000_000)
			require.Equal(t, row.puts, s.Puts())
			require.Len(t, s.Objects(), 1)
		})
	}
}

func TestServeOffloadsLargeOutputs(t *testing.T) {
	t.Parallel()
	s := bucketdouble.New(t)
	p := runToEnd(t, command{
		args: []string{
			binary(t), "serve", "--python", python(t), "--handler", writeLargeHandler(t), "--offload-outputs", "--max-result", "1MB",
			"--test_input", `{"input":2000000}`,
		},
		env: s.Env(), dir: t.TempDir(),
	})
	require.Zero(t, p.wait(t), p.stderr)
	requireFetched(t, p.document(t).Output, 2_000_000)
}

// sdkUpload uploads as a handler does that uses the official package.
const sdkUpload = `
from runpod.serverless.utils import rp_upload
print(rp_upload.upload_in_memory_object("sdk.json", b'"sdk"', prefix="j"))
`

// What the worker uploads lies beside what handlers upload with the official package and the same variables. That one's
// signatures are also what shows that the storage of these tests reads signatures right.
func TestOffloadedOutputsLieBesideTheSDKs(t *testing.T) {
	t.Parallel()
	s := bucketdouble.New(t)
	began := time.Now().UTC()
	w := runCommand(t, apidouble.New(t), s.Env(), "--python", python(t), "--handler", writeLargeHandler(t), "--offload-outputs", "--max-result", "1kB")
	w.Offer(`{"id":"j","input":1000}`)
	w.result(t, "j")
	sdk := runToEnd(t, command{args: []string{python(t), "-c", sdkUpload}, env: append(s.Env(), "TZ=UTC", "AWS_REQUEST_CHECKSUM_CALCULATION=when_required"), dir: t.TempDir()})
	require.Zero(t, sdk.wait(t), sdk.stderr)
	require.Equal(t, `"sdk"`, get(t, strings.TrimSpace(sdk.stdout.String())))
	var folders []string
	for _, at := range slices.Sorted(maps.Keys(s.Objects())) {
		folders = append(folders, path.Dir(at))
	}
	if began.Month() == time.Now().UTC().Month() {
		require.Equal(t, []string{began.Format("01-06") + "/j", began.Format("01-06") + "/j"}, folders)
	}
}
