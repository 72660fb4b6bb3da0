package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// ParseURL reads the URL of a webhook: absolute, over http or https.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("must be an http or https URL, not %q", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("names no host")
	}
	return u, nil
}

// refusedError says that a message must not go where its URL leads. Trying again changes nothing.
type refusedError struct{ addr netip.Addr }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s is not a public address (--allow-private-webhooks permits it)", e.addr)
}

// newClient is a client that looks at the addresses it really connects to, whatever names, notations and
// answers of a name server led there. It follows no redirects, which would need a second look, asks
// no proxy, which would connect in its place, and unpacks nothing.
func newClient(o Options) *http.Client {
	dialer := &net.Dialer{Timeout: o.Timeout, KeepAlive: 15 * time.Second}
	if !o.AllowPrivate {
		dialer.Control = publicOnly
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    o.Timeout,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaders,
			MaxIdleConns:           o.Concurrent,
			MaxIdleConnsPerHost:    o.PerHost,
			IdleConnTimeout:        30 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func publicOnly(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if addr := to.Addr(); !isPublic(addr) {
		return &refusedError{addr}
	}
	return nil
}

// reserved are the networks that look public to net/netip, but lead nowhere, back home, or to an address
// within an address.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, network := range reserved {
		if network.Contains(addr) {
			return false
		}
	}
	return true
}
