package emulator

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"runpodctl-worker/internal/protocol/server"
)

// guard keeps web pages out. A browser reaches what listens on its own machine, so without it any page could
// submit jobs, or, under a name of its own that resolves to this machine, also read the results.
type guard struct {
	hosts   []string // empty: any
	origins []string // from which pages may call
	foreign bool     // pages from elsewhere may: they would need a key, which no browser sends by itself
	next    http.Handler
}

func newGuard(o *Options, next http.Handler) http.Handler {
	return &guard{
		hosts: o.Hosts, origins: o.Origins,
		foreign: len(o.Hosts) == 0 && o.APIKey != "",
		next:    next,
	}
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.knows(r.Host) {
		server.WriteProblem(w, http.StatusForbidden, fmt.Sprintf("host %q is not served here; --allow-host permits it", hostname(r.Host)))
		return
	}
	origin, crossSite := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site") == "cross-site"
	if origin == "" && (!crossSite || opensDocs(r)) {
		g.next.ServeHTTP(w, r)
		return
	}
	switch {
	case g.admits(origin):
		if share(w, r, origin) {
			return
		}
	case g.foreign, origin != "" && sameSite(origin, r.Host):
	default:
		server.WriteProblem(w, http.StatusForbidden, fmt.Sprintf("pages from origin %q may not call this server; --cors permits them", origin))
		return
	}
	g.next.ServeHTTP(w, r)
}

// opensDocs reports whether somebody follows a link to the description of the API. The page that the link is on
// sees nothing of the answer.
func opensDocs(r *http.Request) bool {
	path, h := squeeze(r.URL.Path), r.Header
	return r.Method == http.MethodGet && (path == "/docs" || path == "/openapi.json") &&
		h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document"
}

func (g *guard) knows(host string) bool {
	if len(g.hosts) == 0 || host == "" { // no browser leaves it out
		return true
	}
	name := hostname(host)
	return isLocal(name) || slices.Contains(g.hosts, strings.ToLower(name)) || slices.Contains(g.hosts, "*")
}

func (g *guard) admits(origin string) bool {
	return origin != "" && (slices.Contains(g.origins, origin) || slices.Contains(g.origins, "*"))
}

// share lets a page read the answer, and answers the question that a browser asks before the call.
func share(w http.ResponseWriter, r *http.Request, origin string) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Max-Age", "600")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// sameSite reports whether a page comes from the host that it calls, on whatever port.
func sameSite(origin, host string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	from, to := u.Hostname(), strings.Trim(hostname(host), "[]")
	return strings.EqualFold(from, to) || isLocal(from) && isLocal(to)
}

// hostname is the host of a Host header without its port.
func hostname(host string) string {
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		return host[:colon]
	}
	return host
}

// isLocal reports whether a name can only mean this machine.
func isLocal(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
