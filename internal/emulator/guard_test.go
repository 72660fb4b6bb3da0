package emulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
)

// browse sends a request through everything that a listener would.
func browse(t *testing.T, o emulator.Options, method, host string, header map[string]string) *http.Response {
	t.Helper()
	return browsePath(t, o, method, host, "/v2/local/health", header)
}

func browsePath(t *testing.T, o emulator.Options, method, host, path string, header map[string]string) *http.Response {
	t.Helper()
	e, err := emulator.New(o)
	require.NoError(t, err)
	defer e.Close()
	req := httptest.NewRequest(method, path, nil)
	req.Host = host
	for name, value := range header {
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	e.Handler().ServeHTTP(rec, req)
	return rec.Result()
}

// SE-02: a name that is not ours may be an attacker's that resolves to this machine.
func TestHosts(t *testing.T) {
	local := emulator.Options{Hosts: []string{"localhost", "dev.example.com"}}
	for host, status := range map[string]int{
		"localhost": 200, "localhost:8000": 200, "LOCALHOST:8000": 200, "localhost.": 200, "app.localhost": 200,
		"127.0.0.1:8000": 200, "127.1.2.3": 200, "[::1]:8000": 200, "[::1]": 200, "[::ffff:127.0.0.1]:1": 200, "": 200,
		"dev.example.com": 200, "DEV.example.com:8000": 200,
		"evil.example.com": 403, "evil.example.com:8000": 403, "localhost.evil.com": 403, "10.0.0.1": 403, "[fe80::1]:8000": 403,
		"127.0.0.1.evil.com": 403, "evillocalhost": 403, "0.0.0.0": 403,
	} {
		require.Equal(t, status, browse(t, local, "GET", host, nil).StatusCode, host)
		require.Equal(t, 200, browse(t, emulator.Options{}, "GET", host, nil).StatusCode, "any host: %s", host)
	}
	res := browse(t, local, "GET", "evil.example.com", nil)
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, `{"status":403,"title":"Forbidden","detail":"host \"evil.example.com\" is not served here; --allow-host permits it"}`, string(body))
}

func TestOrigins(t *testing.T) {
	local := emulator.Options{Hosts: []string{"localhost"}, Origins: []string{"https://app.example.com"}}
	public := emulator.Options{APIKey: "K", Origins: []string{"https://app.example.com"}}
	for name, row := range map[string]struct {
		options      emulator.Options
		origin, site string
		status       int
		shared       string
	}{
		"none":                       {local, "", "", 200, ""},
		"same-origin, says a page":   {local, "", "same-origin", 200, ""},
		"the address line":           {local, "", "none", 200, ""},
		"an image elsewhere":         {local, "", "cross-site", 403, ""},
		"its own":                    {local, "http://localhost:8000", "same-origin", 200, ""},
		"another port":               {local, "http://localhost:3000", "same-site", 200, ""},
		"another name of ours":       {local, "http://127.0.0.1:3000", "cross-site", 200, ""},
		"a foreign one":              {local, "https://evil.example.com", "cross-site", 403, ""},
		"a foreign one, old browser": {local, "https://evil.example.com", "", 403, ""},
		"a file":                     {local, "null", "cross-site", 403, ""},
		"no origin at all":           {local, "x", "", 403, ""},
		"permitted":                  {local, "https://app.example.com", "cross-site", 200, "https://app.example.com"},
		"permitted, other scheme":    {local, "http://app.example.com", "cross-site", 403, ""},
		"open":                       {emulator.Options{}, "https://evil.example.com", "", 403, ""},
		"all permitted":              {emulator.Options{Origins: []string{"*"}}, "null", "cross-site", 200, "null"},
		"with a key":                 {public, "https://evil.example.com", "cross-site", 200, ""},
		"with a key, permitted":      {public, "https://app.example.com", "cross-site", 200, "https://app.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{"Authorization": "Bearer K"}
			if row.origin != "" {
				header["Origin"] = row.origin
			}
			if row.site != "" {
				header["Sec-Fetch-Site"] = row.site
			}
			res := browse(t, row.options, "GET", "localhost:8000", header)
			require.Equal(t, row.status, res.StatusCode)
			require.Equal(t, row.shared, res.Header.Get("Access-Control-Allow-Origin"))
		})
	}
}

// A link on a page elsewhere may lead to the docs. Nothing else may be reached that way.
func TestLinksToTheDocs(t *testing.T) {
	for name, row := range map[string]struct {
		method, host, path, mode, dest, origin string
		status                                 int
	}{
		"the docs":         {"GET", "localhost", "/docs", "navigate", "document", "", 200},
		"with a slash":     {"GET", "localhost", "/docs/", "navigate", "document", "", 200},
		"the document":     {"GET", "localhost", "/openapi.json", "navigate", "document", "", 200},
		"only asked for":   {"HEAD", "localhost", "/docs", "navigate", "document", "", 403},
		"fetched":          {"GET", "localhost", "/openapi.json", "no-cors", "empty", "", 403},
		"in a frame":       {"GET", "localhost", "/docs", "navigate", "iframe", "", 403},
		"a form":           {"POST", "localhost", "/docs", "navigate", "document", "https://evil.example.com", 403},
		"a form, no name":  {"POST", "localhost", "/docs", "navigate", "document", "", 403},
		"a script":         {"GET", "localhost", "/docs/page.js", "no-cors", "script", "", 403},
		"the API":          {"GET", "localhost", "/v2/local/health", "navigate", "document", "", 403},
		"the faults":       {"GET", "localhost", "/_emulator/faults", "navigate", "document", "", 403},
		"another name":     {"GET", "evil.example.com", "/docs", "navigate", "document", "", 403},
		"an older browser": {"GET", "localhost", "/docs", "", "", "", 403},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": row.mode, "Sec-Fetch-Dest": row.dest}
			if row.origin != "" {
				header["Origin"] = row.origin
			}
			res := browsePath(t, emulator.Options{Hosts: []string{"localhost"}}, row.method, row.host, row.path, header)
			require.Equal(t, row.status, res.StatusCode)
		})
	}
}

func TestPreflight(t *testing.T) {
	o := emulator.Options{APIKey: "K", Origins: []string{"https://app.example.com"}}
	ask := func(origin string) *http.Response {
		return browse(t, o, "OPTIONS", "localhost", map[string]string{
			"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type",
			"Access-Control-Request-Private-Network": "true",
		})
	}
	res := ask("https://app.example.com")
	require.Equal(t, 204, res.StatusCode, "it carries no key")
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "https://app.example.com", "Access-Control-Allow-Headers": "authorization,content-type",
		"Access-Control-Allow-Private-Network": "true", "Vary": "Origin",
	} {
		require.Equal(t, want, res.Header.Get(name), name)
	}
	allowed := strings.Split(res.Header.Get("Access-Control-Allow-Methods"), ", ")
	require.ElementsMatch(t, []string{"GET", "POST", "PUT", "PATCH", "DELETE"}, allowed, "what the routes answer to")
	require.Empty(t, ask("https://evil.example.com").Header.Get("Access-Control-Allow-Origin"))
}

// Workers and clients may have keys of their own; who administers has the clients'.
func TestWorkerKey(t *testing.T) {
	r := newRig(t, emulator.Options{APIKey: "clients", WorkerKey: "workers", TakeHold: time.Millisecond})
	for path, key := range map[string]string{
		"/v2/local/health": "clients", "/_emulator/faults": "clients",
		"/v2/local/job-take/w1": "workers", "/v2/local/job-take-batch/w1": "workers", "/v2/local/ping/w1": "workers",
	} {
		for _, tried := range []string{"clients", "workers", "other", ""} {
			r.key = tried
			code, _ := r.call("GET", path, "")
			require.Equal(t, tried == key, code < 400, "%s with key %q: %d", path, tried, code)
			require.Equal(t, tried != key, code == 401, "%s with key %q: %d", path, tried, code)
		}
	}
}

// Routes that want no body read none, however long it is.
func TestBodiesThatNobodyWants(t *testing.T) {
	n := newNetwork(t, emulator.Options{})
	for _, path := range []string{"/cancel/x", "/retry/x", "/status/x", "/purge-queue", "/nothing"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+path, strings.NewReader(strings.Repeat("x", 8<<20)))
		require.NoError(t, err)
		res, err := n.client.Do(req)
		if err != nil {
			continue // the connection was closed on the sender, which is as good
		}
		res.Body.Close()
		require.Less(t, res.StatusCode, 500, path)
	}
}
