package host

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
)

// publicAPI is who is asked where nobody says which API a worker will talk to.
var publicAPI = target{scheme: "https", host: "api.runpod.ai", port: "443", origin: "default", severity: checks.Warn}

// target is whom the network check wants to reach.
type target struct {
	scheme, host, port string
	origin             string // who named it
	severity           checks.Status
}

func (t target) address() string { return net.JoinHostPort(t.host, t.port) }

// targetOf is the target that the command line names, else the host of the job API. No part of a URL but its host and
// port is ever shown: the rest may hold keys.
func targetOf(cfg checks.Config, where string) (target, error) {
	if where != "" {
		return parseTarget(where)
	}
	job := strings.TrimSpace(cfg.Get(config.GetJob))
	if job == "" {
		return publicAPI, nil
	}
	u, err := url.Parse(job)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return target{}, fmt.Errorf("%s is no URL with a host (its value is not shown, since it may hold a key)", config.GetJob)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return target{scheme: u.Scheme, host: u.Hostname(), port: port, origin: config.GetJob, severity: checks.Fail}, nil
}

// ValidTarget says what is wrong with a target for Network.
func ValidTarget(where string) error {
	_, err := parseTarget(where)
	return err
}

// parseTarget reads "HOST:PORT", where an IPv6 address is in brackets.
func parseTarget(s string) (target, error) {
	host, port, err := net.SplitHostPort(s)
	n, numberErr := strconv.ParseUint(port, 10, 16)
	if err != nil || numberErr != nil || host == "" || n == 0 {
		return target{}, fmt.Errorf("target %q: want HOST:PORT", s)
	}
	return target{scheme: "https", host: host, port: port, origin: "--target", severity: checks.Fail}, nil
}
