package host

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"

	"runpodctl-worker/internal/config"
)

// route is the way to a target: at once, or through the proxy that the environment names for it.
type route struct {
	proxy   string // HOST:PORT of the proxy, without its credentials; empty: none
	connect func(context.Context) (net.Conn, error)
}

func (r route) through() string {
	if r.proxy == "" {
		return ""
	}
	return " through the proxy " + r.proxy
}

func (r route) proxyText() string {
	if r.proxy == "" {
		return "none"
	}
	return r.proxy
}

// routeTo obeys the proxy variables as the worker's own calls do.
func routeTo(lookup config.Lookup, t target, dial dialFunc) (route, error) {
	via, err := proxyFor(lookup, t)
	if err != nil {
		return route{}, err
	}
	direct := func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", t.address()) }
	if via == nil {
		return route{connect: direct}, nil
	}
	at := net.JoinHostPort(via.Hostname(), portOf(via))
	r := route{proxy: at}
	switch via.Scheme {
	case "socks5", "socks5h":
		socks, err := proxy.FromURL(via, dialer(dial))
		if err != nil {
			return route{}, fmt.Errorf("the proxy %s cannot be used", at)
		}
		r.connect = func(ctx context.Context) (net.Conn, error) {
			return socks.(proxy.ContextDialer).DialContext(ctx, "tcp", t.address())
		}
	default:
		r.connect = func(ctx context.Context) (net.Conn, error) { return throughHTTP(ctx, dial, via, at, t) }
	}
	return r, nil
}

// proxyFor is the proxy for a target, nil where it needs none.
func proxyFor(lookup config.Lookup, t target) (*url.URL, error) {
	get := func(names ...string) string {
		for _, name := range names {
			if v, ok := lookup(name); ok && v != "" {
				return v
			}
		}
		return ""
	}
	settings := httpproxy.Config{
		HTTPProxy:  get("HTTP_PROXY", "http_proxy"),
		HTTPSProxy: get("HTTPS_PROXY", "https_proxy"),
		NoProxy:    get("NO_PROXY", "no_proxy"),
	}
	via, err := settings.ProxyFunc()(&url.URL{Scheme: t.scheme, Host: t.address()})
	if err != nil || via != nil && via.Hostname() == "" { // the value is not shown: it may hold a password
		return nil, errors.New("the proxy variable for " + t.scheme + " is no URL")
	}
	return via, nil
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
}

// throughHTTP connects to an HTTP proxy and asks it for a tunnel. Plain HTTP needs none: the proxy forwards each request.
func throughHTTP(ctx context.Context, dial dialFunc, via *url.URL, at string, t target) (net.Conn, error) {
	plain, err := dial(ctx, "tcp", at)
	if err != nil || t.scheme == "http" {
		return plain, err
	}
	stop := context.AfterFunc(ctx, func() { _ = plain.Close() })
	conn := plain
	if via.Scheme == "https" {
		conn = tls.Client(plain, &tls.Config{ServerName: via.Hostname()})
	}
	err = tunnel(conn, via, t)
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func tunnel(conn net.Conn, via *url.URL, t target) error {
	req := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Opaque: t.address()}, Host: t.address(), Header: http.Header{},
	}
	if via.User != nil {
		password, _ := via.User.Password()
		auth := http.Request{Header: http.Header{}}
		auth.SetBasicAuth(via.User.Username(), password)
		req.Header.Set("Proxy-Authorization", auth.Header.Get("Authorization"))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return fmt.Errorf("no HTTP from the proxy: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("the proxy answers " + resp.Status)
	}
	return nil
}

// dialer makes a function what the proxy package wants.
type dialer dialFunc

func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d(context.Background(), network, address)
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}
