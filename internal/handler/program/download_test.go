package program_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/handler/program"
)

// startDownloader runs a handler that downloads its input and returns the size, or why not.
func startDownloader(t *testing.T, preparation string) *child {
	t.Helper()
	python := installed(t)
	t.Setenv("NO_PROXY", "*") // a proxy would be another reason to refuse
	t.Setenv("no_proxy", "*")
	t.Setenv("RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS", "")
	return start(t, program.Options{Dir: t.TempDir(), Args: program.Command(write(t, `
import os, runpod, socket
from runpod.serverless.utils import rp_download, rp_ssrf
def handler(job):
    try: return os.path.getsize(rp_download.file(job["input"])["file_path"])
    except rp_ssrf.SSRFError as error: return str(error)
`+preparation+`
runpod.serverless.start({"handler": handler})
`), python)})
}

// SE-01: the installed package refuses to download from where only the machine itself should get to. It still does
// so in a program that the worker runs.
func TestSE01_Downloads(t *testing.T) {
	var visits atomic.Int32
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	t.Cleanup(secret.Close)
	port := secret.URL[strings.LastIndexByte(secret.URL, ':'):]
	c := startDownloader(t, "")
	for name, url := range map[string]string{
		"loopback":         "http://127.0.0.1" + port + "/a.txt",
		"localhost":        "http://localhost" + port + "/a.txt",
		"decimal":          "http://2130706433" + port + "/a.txt",
		"short":            "http://127.1" + port + "/a.txt",
		"any address":      "http://0.0.0.0" + port + "/a.txt",
		"IPv6 loopback":    "http://[::1]" + port + "/a.txt",
		"mapped into IPv6": "http://[::ffff:127.0.0.1]" + port + "/a.txt",
		"metadata":         "http://169.254.169.254/latest/meta-data/a.txt",
		"private":          "http://10.0.0.1/a.txt",
		"carrier's NAT":    "http://100.64.0.1/a.txt",
		"unique local":     "http://[fd00::1]/a.txt",
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := c.do(string(quote(t, url)))
			require.Empty(t, out.Error)
			require.Contains(t, string(out.Output), "resolves to non-public address")
		})
	}
	t.Run("file", func(t *testing.T) {
		out, _ := c.do(`"file:///etc/hostname"`)
		require.Contains(t, string(out.Output), "blocked URL scheme")
	})
	require.Zero(t, visits.Load())
}

// SE-01: nor do redirects, a name that changes its mind, or a body without end get past the package. For want of
// a network, 127.0.0.1 counts as public.
func TestSE01_DownloadsFromAPublicServer(t *testing.T) {
	const limit = 1 << 20
	mux := http.NewServeMux()
	mux.HandleFunc("/small.txt", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "small") })
	mux.Handle("/redirect.txt", http.RedirectHandler("http://169.254.169.254/a.txt", http.StatusFound))
	mux.Handle("/redirect-file.txt", http.RedirectHandler("file:///etc/hostname", http.StatusFound))
	mux.HandleFunc("/endless.txt", func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 1<<16); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/bomb.txt", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(make([]byte, 32*limit)) // the receiver hangs up before the end
		_ = z.Close()
	})
	public := httptest.NewServer(mux)
	t.Cleanup(public.Close)
	port := public.URL[strings.LastIndexByte(public.URL, ':'):]
	t.Setenv("RUNPOD_MAX_DOWNLOAD_BYTES", strconv.Itoa(limit))
	c := startDownloader(t, `
strict, resolve, lookups = rp_ssrf.is_safe_address, socket.getaddrinfo, []
rp_ssrf.is_safe_address = lambda ip: ip == "127.0.0.1" or strict(ip)
def rebind(host, *args, **more):
    if host != "rebind.test": return resolve(host, *args, **more)
    lookups.append(host)
    return resolve("127.0.0.1" if len(lookups) == 1 else "169.254.169.254", *args, **more)
socket.getaddrinfo = rebind
`)
	for _, tt := range []struct{ name, url, want string }{
		{"small", "http://127.0.0.1" + port + "/small.txt", "5"},
		{"redirect", "http://127.0.0.1" + port + "/redirect.txt", "non-public address 169.254.169.254"},
		{"redirect to a file", "http://127.0.0.1" + port + "/redirect-file.txt", "blocked URL scheme"},
		{"endless", "http://127.0.0.1" + port + "/endless.txt", "exceeds size cap"},
		{"bomb", "http://127.0.0.1" + port + "/bomb.txt", "exceeds size cap"},
		{"public first, private second", "http://rebind.test" + port + "/small.txt", "5"},
		{"private by now", "http://rebind.test" + port + "/small.txt", "non-public address 169.254.169.254"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, _ := c.do(string(quote(t, tt.url)))
			require.Empty(t, out.Error)
			require.Contains(t, string(out.Output), tt.want)
		})
	}
}
