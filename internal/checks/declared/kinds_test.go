package declared

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	require.NoError(t, os.WriteFile(model, make([]byte, 3<<20), 0o644))
	running, err := os.Executable() // root cannot write to it either
	require.NoError(t, err)
	pipe := filepath.Join(t.TempDir(), "pipe") // nobody reads it, so whoever opens it waits
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, tt := range []struct {
		name, body string
		problem    string // empty: passes
	}{
		{"there", model, ""},
		{"a pipe", pipe, ""},
		{"a pipe is not tried", "{path: " + pipe + ", writable: true}", "pipe: neither a file nor a folder"},
		{"a device is not tried", "{path: /dev/null, writable: true}", "/dev/null: neither a file nor a folder"},
		{"a folder", dir, ""},
		{"not there", filepath.Join(dir, "gone"), "gone: not there"},
		{"below a file", filepath.Join(model, "x"), "x: not a directory"},
		{"large enough", "{path: " + model + ", min_size_mb: 3}", ""},
		{"cut off", "{path: " + model + ", min_size_mb: 3.5}", "model: 3.0 MB, want at least 3.5"},
		{"a folder has no size", "{path: " + dir + ", min_size_mb: 1}", "not a file that has a size"},
		{"writable", "{path: " + model + ", writable: true}", ""},
		{"a writable folder", "{path: " + dir + ", writable: true}", ""},
		{"not writable", "{path: " + running + ", writable: true}", ": text file busy"},
		{"a folder that is not writable", "{path: /proc, writable: true}", "/proc: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := runOne(t, "    files:\n      - "+tt.body+"\n", withEnv())
			requireResult(t, res, tt.problem)
		})
	}
	t.Run("several problems", func(t *testing.T) {
		res := runOne(t, "    files: [/none/a, "+model+", /none/b]\n", withEnv())
		require.Equal(t, "/none/a: not there; /none/b: not there", res.Summary)
	})
	t.Run("a relative path begins at the working directory", func(t *testing.T) {
		t.Chdir(dir)
		require.Equal(t, checks.Pass, runOne(t, "    files: [model]\n", withEnv()).Status)
	})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "no file of ours stays behind")
}

// requireResult is for a check that passes, or fails with a problem.
func requireResult(t *testing.T, res checks.Result, problem string) {
	t.Helper()
	if problem == "" {
		require.Equal(t, checks.Pass, res.Status, res.Summary)
		require.NotEmpty(t, res.Summary)
		return
	}
	require.Equal(t, checks.Fail, res.Status, res.Summary)
	require.Contains(t, res.Summary, problem)
	require.NotContains(t, res.Summary, "\n")
	require.NotEmpty(t, res.Remedy)
}

func TestEnv(t *testing.T) {
	deps := withEnv("KEY=secret", "EMPTY=", "MODEL=/models/a")
	for _, tt := range []struct{ name, body, problem string }{
		{"set", "[KEY, MODEL]", ""},
		{"not set", "[KEY, NONE]", "NONE is not set"},
		{"empty", "[EMPTY]", "EMPTY is not set"},
		{"all that are missing", "[NONE, EMPTY]", "NONE is not set; EMPTY is not set"},
		{"it matches", "[{name: MODEL, matches: ^/models/}]", ""},
		{"it does not match", "[{name: KEY, matches: ^sk-}]", "KEY does not match ^sk-"},
		{"a name without a pattern", "[{name: KEY}]", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := runOne(t, "    env: "+tt.body+"\n", deps)
			requireResult(t, res, tt.problem)
			require.NotContains(t, fmt.Sprint(res), "secret")
		})
	}
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.URL.Path == "/key" && r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/host":
			w.WriteHeader(map[bool]int{true: 200, false: 421}[r.Host == "inner.example"])
		case r.URL.Path == "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, "/good", http.StatusFound)
		case r.URL.Path == "/silent":
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	deps := withEnv("TOKEN=secret", "SPLIT=secret\nX: y")
	for _, tt := range []struct{ name, body, problem string }{
		{"the URL alone", "http: URL/good", ""},
		{"an error", "http: URL/busy", "/busy: answers 503 Service Unavailable"},
		{"an error that is wanted", "http: {url: URL/busy, status: [200, 503]}", ""},
		{"good, but not wanted", "http: {url: URL/good, status: [204]}", "answers 200 OK"},
		{"a redirect is not followed", "http: URL/elsewhere", "answers 302 Found"},
		{"a key from the environment", "http: {url: URL/key, headers: {Authorization: 'Bearer ${TOKEN}'}}", ""},
		{"a dollar is no reference", "http: {url: URL/key, headers: {Authorization: 'Bearer $TOKEN'}}", "answers 401"},
		{"a key that is not set", "http: {url: URL/key, headers: {Authorization: 'Bearer ${NONE}'}}", "header Authorization: NONE is not set"},
		{"a key that cannot be a header", "http: {url: URL/key, headers: {Authorization: 'Bearer ${SPLIT}'}}", "invalid header field value"},
		{"another host name", "http: {url: URL/host, headers: {Host: inner.example}}", ""},
		{"keys in the URL", "http: USER/busy?key=secret", "/busy: answers 503"},
		{"nobody there", "http: " + gone.URL + "/?key=secret", "connection refused"},
		{"no answer", "timeout: 100ms\n    http: URL/silent?key=secret", "no answer within 100ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := strings.ReplaceAll(tt.body, "URL", server.URL)
			body = strings.ReplaceAll(body, "USER", strings.Replace(server.URL, "://", "://me:secret@", 1))
			res := runOne(t, "    "+body+"\n", deps)
			requireResult(t, res, tt.problem)
			require.NotContains(t, fmt.Sprint(res), "secret")
		})
	}
}

func TestGPUMemory(t *testing.T) {
	large, small := GPU{0, "RTX 4090", 23.99, 20}, GPU{1, "RTX A4000", 16, 15.5}
	for _, tt := range []struct {
		name    string
		deps    Deps
		problem string
	}{
		{"enough", withGPUs(nil, large), ""},
		{"one has too little", withGPUs(nil, large, small), "GPU 1 (RTX A4000) has 16.0 GB"},
		{"no GPU", withGPUs(nil), "no GPU"},
		{"nobody can tell", withGPUs(errors.New("driver does not answer")), "cannot ask the GPUs: driver does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := runOne(t, "    gpu_memory_gb: 23.5\n", tt.deps)
			requireResult(t, res, tt.problem)
			for _, f := range res.Facts {
				require.Regexp(t, `GB free \(RTX`, f.String())
			}
		})
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, body, problem string }{
		{"enough", "{path: " + dir + ", min_free_gb: 0.000001}", ""},
		{"enough of both", "{path: " + dir + ", min_free_gb: 0.000001, min_free_percent: 0.000001}", ""},
		{"too few GB", "{path: " + dir + ", min_free_gb: 1e9, min_free_percent: 0.000001}", dir + ": "},
		{"too small a share", "{path: " + dir + ", min_free_percent: 100}", " GB free of "},
		{"not there", "{path: " + dir + "/none, min_free_gb: 1}", "no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) { requireResult(t, runOne(t, "    disk: "+tt.body+"\n", withEnv()), tt.problem) })
	}
	res := runOne(t, "    disk: {path: "+dir+", min_free_gb: 0.5, min_free_percent: 1}\n", withEnv())
	require.Equal(t, &checks.Threshold{Value: 0.5, Text: "at least 0.5 GB and 1 % free", Origin: "checks file"}, res.Threshold)
}
