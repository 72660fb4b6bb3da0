// Package config is what the environment and the config file tell the program, as typed values that
// are built once by pure functions.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"runpodctl-worker/internal/protocol"
)

// Lookup finds a variable; os.LookupEnv is one.
type Lookup func(name string) (string, bool)

// Worker is what the platform's environment tells a worker.
type Worker struct {
	ID           string // of this worker
	EndpointID   string
	APIKey       string
	URLs         protocol.Templates
	PingInterval time.Duration
	InitTimeout  time.Duration // how long the handler may load; 0 = no limit
}

const (
	defaultPingInterval = 10 * time.Second
	defaultInitTimeout  = 420 * time.Second // past it the platform marks a worker unhealthy
)

// WorkerFrom reads the platform's environment. A variable that is set but makes no sense is an
// error that names it.
func WorkerFrom(lookup Lookup) (Worker, error) {
	get := func(name string) string {
		v, _ := lookup(name)
		return v
	}
	w := Worker{
		ID:         get(PodID),
		EndpointID: get(EndpointID),
		APIKey:     get(AIAPIKey),
		URLs: protocol.Templates{
			GetJob:     get(GetJob),
			PostOutput: get(PostOutput),
			PostStream: get(PostStream),
			Ping:       get(Ping),
		},
		PingInterval: defaultPingInterval,
		InitTimeout:  defaultInitTimeout,
	}
	if w.ID == "" {
		w.ID = uuid.NewString()
	}
	// Without the others a worker can work, so what is wrong with them shows when they are called.
	for name, template := range map[string]string{GetJob: w.URLs.GetJob, PostOutput: w.URLs.PostOutput} {
		if _, err := parseURL(template); template != "" && err != nil {
			return Worker{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := checkKey(AIAPIKey, w.APIKey); err != nil {
		return Worker{}, err
	}
	if err := number(lookup, PingInterval, time.Millisecond, &w.PingInterval); err != nil {
		return Worker{}, err
	}
	if err := number(lookup, InitTimeout, time.Second, &w.InitTimeout); err != nil {
		return Worker{}, err
	}
	return w, nil
}

// parseURL refuses what no call can be made to. The placeholders of a template are in its path. What a URL holds may be
// secret, so the error does not show it.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("is no URL: want http:// or https:// and a host")
	}
	return u, nil
}

// checkKey refuses a key that cannot be sent.
func checkKey(name, key string) error {
	if strings.ContainsFunc(key, unicode.IsControl) {
		return fmt.Errorf("%s holds a line break or another control character, which no header can carry", name)
	}
	return nil
}

// RealtimePortFrom reads the port of a realtime worker; 0: this is none.
func RealtimePortFrom(lookup Lookup) (int, error) {
	text, _ := lookup(RealtimePort)
	if text = strings.TrimSpace(text); text == "" {
		return 0, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%s=%q is not a port", RealtimePort, text)
	}
	return int(port), nil
}

// number reads a whole number of units into d, which keeps its default where the variable is not set.
func number(lookup Lookup, name string, unit time.Duration, d *time.Duration) error {
	v, ok := lookup(name)
	if !ok || v == "" {
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 || n > int64(365*24*time.Hour/unit) {
		return fmt.Errorf("%s=%q is not a number of %s", name, v, unitName(unit))
	}
	*d = time.Duration(n) * unit
	return nil
}

func unitName(unit time.Duration) string {
	if unit == time.Millisecond {
		return "milliseconds"
	}
	return "seconds"
}

// Overlay is a lookup in which the pairs NAME=value come first.
func Overlay(under Lookup, pairs []string) Lookup {
	set := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		set[name] = value
	}
	return func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		return under(name)
	}
}
