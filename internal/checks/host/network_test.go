package host

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks"
)

func refused() error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: nil, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

func TestNetwork_Failures(t *testing.T) {
	const job = "RUNPOD_WEBHOOK_GET_JOB=https://user:secret@api.example:8443/v2/key/job-take/$RUNPOD_POD_ID?gpu=secret"
	noName := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}}
	slowName := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "api.example", IsTimeout: true}}
	for _, tt := range []struct {
		name    string
		env     []string
		dial    func(ctx context.Context) error
		want    checks.Status
		summary string
		said    string
	}{
		{
			"refused",
			[]string{job},
			func(context.Context) error { return refused() }, checks.Fail,
			"no connection to api.example:8443: connection refused", "Network connectivity failed: Connection refused to api.example:8443",
		},
		{
			"no answer",
			[]string{job},
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, checks.Fail,
			"no connection to api.example:8443: no answer", "Network connectivity failed: Timeout connecting to api.example:8443 (5s)",
		},
		{
			"no such name",
			[]string{job},
			func(context.Context) error { return noName }, checks.Fail,
			"DNS: cannot resolve api.example: no such host", "Network connectivity check failed: lookup api.example: no such host",
		},
		{
			"no answer from DNS",
			[]string{job, "RUNPOD_NETWORK_CHECK_TIMEOUT=10"},
			func(context.Context) error { return slowName }, checks.Fail,
			"DNS: cannot resolve api.example: i/o timeout", "Network connectivity check failed: lookup api.example: i/o timeout",
		},
		{
			"nobody says which API", nil, func(context.Context) error { return refused() }, checks.Warn,
			"no connection to api.runpod.ai:443: connection refused", "Network connectivity failed: Connection refused to api.runpod.ai:443",
		},
		{
			"through a proxy",
			[]string{job, "HTTPS_PROXY=http://me:secret@proxy.example:3128"},
			func(context.Context) error { return refused() }, checks.Fail,
			"no connection to api.example:8443 through the proxy proxy.example:3128: connection refused",
			"Network connectivity failed: Connection refused to api.example:8443",
		},
		{
			"a URL without a host",
			[]string{"RUNPOD_WEBHOOK_GET_JOB=secret"},
			nil, checks.Error,
			"RUNPOD_WEBHOOK_GET_JOB is no URL with a host (its value is not shown, since it may hold a key)", "",
		},
		{
			"no URL at all",
			[]string{"RUNPOD_WEBHOOK_GET_JOB=https://secret:x y@\x7f"},
			nil, checks.Error,
			"RUNPOD_WEBHOOK_GET_JOB is no URL with a host (its value is not shown, since it may hold a key)", "",
		},
		{
			"a proxy that is no URL",
			[]string{job, "HTTPS_PROXY=me:secret@[::1"},
			nil, checks.Error,
			"the proxy variable for https is no URL", "",
		},
		{
			"a time that makes no sense",
			[]string{job, "RUNPOD_NETWORK_CHECK_TIMEOUT=soon"},
			nil, checks.Error,
			`RUNPOD_NETWORK_CHECK_TIMEOUT="soon": want a number of seconds from 0.001 to 86400`, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := configOf(tt.env...)
				dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, tt.dial(ctx) }
				began := time.Now()
				res := network{cfg, "", dial}.run(t.Context())
				require.Equal(t, tt.want, res.Status)
				require.Equal(t, tt.summary, res.Summary)
				require.Equal(t, tt.said, res.Said)
				require.NotEmpty(t, res.Remedy)
				if tt.dial != nil {
					require.Equal(t, cfg.NetworkTimeout.Value, time.Since(began), "it tries as long as it may, and no longer")
					require.Greater(t, factsOf(res)["attempts"], 1)
				}
				for _, text := range []string{res.Summary, res.Said, res.Remedy} {
					require.NotContains(t, text, "secret")
				}
				for _, f := range res.Facts {
					require.NotContains(t, f.String(), "secret")
				}
			})
		})
	}
}

func TestNetwork_Retries(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails int           // attempts that fail
		takes time.Duration // before an attempt is over
		want  checks.Status
	}{
		{"it works at once", 0, 0, checks.Pass},
		{"the network comes up late", 4, 0, checks.Pass},
		{"a slow handshake", 0, 2 * time.Second, checks.Pass},
		{"the first packet is lost", 1, time.Hour, checks.Pass},
		{"every packet is lost", 100, time.Hour, checks.Fail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
					attempts++
					takes := tt.takes
					if attempts > tt.fails && takes == time.Hour {
						takes = 0
					}
					select {
					case <-time.After(takes):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					if attempts <= tt.fails {
						return nil, refused()
					}
					conn, other := net.Pipe()
					return conn, other.Close()
				}
				res := network{configOf(), "box.example:443", dial}.run(t.Context())
				require.Equal(t, tt.want, res.Status, res.Summary)
				if tt.want == checks.Pass {
					require.Equal(t, tt.fails+1, factsOf(res)["attempts"])
				}
			})
		})
	}
}

func TestTargetOf(t *testing.T) {
	for _, tt := range []struct {
		name, job, where string
		want             target // no host: an error
	}{
		{"nobody says", "", "", publicAPI},
		{"https", "https://api.example/v2/x/job-take/$RUNPOD_POD_ID?a=b", "", target{"https", "api.example", "443", "RUNPOD_WEBHOOK_GET_JOB", checks.Fail}},
		{"http and a port", "http://127.0.0.1:8000/v2/x", "", target{"http", "127.0.0.1", "8000", "RUNPOD_WEBHOOK_GET_JOB", checks.Fail}},
		{"plain http", "http://box.example/v2", "", target{"http", "box.example", "80", "RUNPOD_WEBHOOK_GET_JOB", checks.Fail}},
		{"IPv6", "https://[2001:db8::1]/v2", "", target{"https", "2001:db8::1", "443", "RUNPOD_WEBHOOK_GET_JOB", checks.Fail}},
		{"a flag beats the variable", "https://api.example/", "other.example:22", target{"https", "other.example", "22", "--target", checks.Fail}},
		{"a flag with IPv6", "", "[::1]:443", target{"https", "::1", "443", "--target", checks.Fail}},
		{"another scheme", "ftp://api.example/", "", target{}},
		{"a flag without a port", "", "api.example", target{}},
		{"a flag with port 0", "", "api.example:0", target{}},
		{"a flag with a large port", "", "api.example:70000", target{}},
		{"a flag with a name for a port", "", "api.example:https", target{}},
		{"a flag without a host", "", ":443", target{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := targetOf(configOf("RUNPOD_WEBHOOK_GET_JOB="+tt.job), tt.where)
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want.host == "", err != nil)
			if tt.where != "" {
				require.Equal(t, err, ValidTarget(tt.where))
			}
		})
	}
}

// listen serves each connection to a loopback address of the network, "tcp4" or "tcp6".
func listen(t *testing.T, network, address string, serve func(net.Conn)) net.Addr {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr()
}

func TestNetwork_RealConnections(t *testing.T) {
	for _, tt := range []struct{ name, network, address string }{
		{"IPv4", "tcp4", "127.0.0.1:0"},
		{"IPv6 only", "tcp6", "[::1]:0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := listen(t, tt.network, tt.address, func(net.Conn) {}).String()
			res := Network(configOf("RUNPOD_WEBHOOK_GET_JOB=http://"+at+"/job-take/x"), "").Run(t.Context())
			require.Equal(t, checks.Pass, res.Status, res.Summary)
			require.Regexp(t, `^Network connectivity passed: Connected to \S+:\d+ \(\d+ms\)$`, res.Said)
			require.Contains(t, res.Summary, at)
			require.Equal(t, "none", res.Facts[2].String())
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		res := Network(configOf("RUNPOD_NETWORK_CHECK_TIMEOUT=0.3"), l.Addr().String()).Run(t.Context())
		require.Equal(t, checks.Fail, res.Status)
		require.Contains(t, res.Summary, "connection refused")
	})
}

func TestNetwork_ThroughAProxy(t *testing.T) {
	answer := func(status string, asked *atomic.Pointer[http.Request]) func(net.Conn) {
		return func(conn net.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return // plain HTTP: nothing is asked
			}
			asked.Store(req)
			io.WriteString(conn, "HTTP/1.1 "+status+"\r\n\r\n")
		}
	}
	for _, tt := range []struct {
		name, job, status string
		env               []string
		want              checks.Status
		summary           string
		asked             string // of the proxy; empty: nothing
	}{
		{"a tunnel", "https://api.example/x", "200 OK", nil, checks.Pass, "connected to api.example:443 through the proxy 127.0.0.1:", "api.example:443"},
		{"a proxy that refuses", "https://api.example/x", "403 Forbidden", nil, checks.Fail, "the proxy answers 403 Forbidden", "api.example:443"},
		{"no proxy, but something else", "https://api.example/x", "", nil, checks.Fail, "no HTTP from the proxy", "api.example:443"},
		{"plain HTTP is forwarded, without a tunnel", "http://api.example/x", "200 OK", nil, checks.Pass, "through the proxy 127.0.0.1:", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Pointer[http.Request]
			at := listen(t, "tcp4", "127.0.0.1:0", answer(tt.status, &asked)).String()
			env := append(tt.env, "RUNPOD_WEBHOOK_GET_JOB="+tt.job, "RUNPOD_NETWORK_CHECK_TIMEOUT=0.5",
				"HTTPS_PROXY=http://me:pa%20ss@"+at, "http_proxy="+at)
			if tt.want == checks.Pass {
				env = append(env, "RUNPOD_NETWORK_CHECK_TIMEOUT=60")
			}
			res := Network(configOf(env...), "").Run(t.Context())
			require.Equal(t, tt.want, res.Status, res.Summary)
			require.Contains(t, res.Summary, tt.summary)
			require.Equal(t, at, factsOf(res)["proxy"])
			req := asked.Load()
			if tt.asked == "" {
				require.Nil(t, req)
				return
			}
			require.Equal(t, http.MethodConnect, req.Method)
			require.Equal(t, tt.asked, req.Host)
			require.Equal(t, "Basic bWU6cGEgc3M=", req.Header.Get("Proxy-Authorization"))
		})
	}
	t.Run("a proxy that says nothing", func(t *testing.T) {
		at := listen(t, "tcp4", "127.0.0.1:0", func(conn net.Conn) { io.Copy(io.Discard, conn) }).String()
		res := Network(configOf("RUNPOD_WEBHOOK_GET_JOB=https://api.example/x", "RUNPOD_NETWORK_CHECK_TIMEOUT=0.3", "https_proxy="+at), "").Run(t.Context())
		require.Equal(t, checks.Fail, res.Status)
		require.Contains(t, res.Summary, "no answer")
	})
}

func TestProxyFor(t *testing.T) {
	for _, tt := range []struct {
		name   string
		env    []string
		target target
		want   string
	}{
		{"none", nil, publicAPI, ""},
		{"upper case", []string{"HTTPS_PROXY=http://p:1"}, publicAPI, "http://p:1"},
		{"lower case", []string{"https_proxy=http://p:1"}, publicAPI, "http://p:1"},
		{"without a scheme", []string{"https_proxy=p:1"}, publicAPI, "http://p:1"},
		{"for the other scheme", []string{"HTTP_PROXY=http://p:1"}, publicAPI, ""},
		{"not for this host", []string{"HTTPS_PROXY=http://p:1", "NO_PROXY=.runpod.ai"}, publicAPI, ""},
		{"not for some other host", []string{"HTTPS_PROXY=http://p:1", "no_proxy=example.com"}, publicAPI, "http://p:1"},
		{"never for loopback", []string{"HTTP_PROXY=http://p:1"}, target{scheme: "http", host: "127.0.0.1", port: "8000"}, ""},
		{"SOCKS", []string{"HTTPS_PROXY=socks5://p"}, publicAPI, "socks5://p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := proxyFor(configOf(tt.env...).Lookup, tt.target)
			require.NoError(t, err)
			if tt.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, tt.want, got.String())
		})
	}
}

func TestRoute_PortsOfProxies(t *testing.T) {
	for proxy, want := range map[string]string{
		"http://p": "p:80", "https://p": "p:443", "socks5://p": "p:1080", "socks5h://[::1]:9": "[::1]:9",
	} {
		t.Run(proxy, func(t *testing.T) {
			var dialed string
			dial := func(_ context.Context, _, address string) (net.Conn, error) {
				dialed = address
				return nil, errors.New("no")
			}
			r, err := routeTo(configOf("HTTPS_PROXY="+proxy).Lookup, publicAPI, dial)
			require.NoError(t, err)
			_, err = r.connect(t.Context())
			require.Error(t, err)
			require.Equal(t, want, dialed)
		})
	}
}
