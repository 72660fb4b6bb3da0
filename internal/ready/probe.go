// Package ready finds out whether what a program serves is ready for jobs: before the first one, and from then on.
package ready

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Probe asks one thing whether it is ready.
type Probe interface {
	// Check returns nil if it is. It asks once, and no longer than ctx lasts.
	Check(ctx context.Context) error
	// String is the probe as it was written, for people.
	String() string
}

// Parse reads a probe: http://HOST/PATH, tcp:HOST:PORT or exec:COMMAND.
func Parse(spec string) (Probe, error) {
	scheme, rest, _ := strings.Cut(spec, ":")
	var (
		probe Probe
		err   error
	)
	switch strings.ToLower(scheme) {
	case "http", "https":
		probe, err = parseWeb(spec)
	case "tcp":
		probe, err = parseTCP(rest)
	case "exec":
		probe, err = parseCommand(rest)
	default:
		err = errors.New("want http://HOST/PATH, tcp:HOST:PORT or exec:COMMAND")
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", spec, err)
	}
	return probe, nil
}

func parseWeb(spec string) (Probe, error) {
	u, err := url.Parse(spec)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err) // without the URL, which the caller names
	case u.Hostname() == "":
		return nil, errors.New("the URL names no host")
	}
	return web{u}, nil
}

func parseTCP(address string) (Probe, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || strings.Contains(host, "/") {
		return nil, errors.New("want tcp:HOST:PORT")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("%q is not a port", port)
	}
	return tcp(address), nil
}

func parseCommand(line string) (Probe, error) {
	if strings.TrimSpace(line) == "" {
		return nil, errors.New("it names no command")
	}
	return command(line), nil
}
