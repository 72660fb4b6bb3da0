// Package client makes a worker's calls to the platform: one method, one HTTP call. Whether and when a
// call is made again is the worker's decision.
package client

import (
	"context"
	"net"
	"net/http"
	"time"

	"runpodctl-worker/internal/protocol"
	"runpodctl-worker/internal/redact"
)

const (
	// pollLimit bounds a long poll. The platform holds one for a shorter time, so silence that lasts
	// this long is a dead connection.
	pollLimit = 90 * time.Second
	// A post may take postLimit, and one second more for every bytesPerSecond of its body.
	postLimit      = 60 * time.Second
	bytesPerSecond = 128 << 10

	defaultPingInterval = 10 * time.Second
	minPingLimit        = time.Second // a handshake takes its time, however often the worker pings
	unhealthyLimit      = 2 * time.Second
	minIdleConns        = 32

	// maxAnswerHeader is far more than any server sends, and a tenth of what is read by default.
	maxAnswerHeader = 1 << 20
)

// Config says where the platform is and who calls.
type Config struct {
	URLs         protocol.Templates
	WorkerID     string
	Key          string        // sent as Authorization, as it is; empty for none
	UserAgent    string        // "runpodctl-worker/1.0.0 (abcdef0) …"
	Concurrency  int           // how many jobs at a time: as many connections are kept alive
	PingInterval time.Duration // a ping may take as long: then the next is due

	// Dial makes the connections; nil for the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Client calls the platform for one worker. It is safe for concurrent use.
type Client struct {
	urls      protocol.Templates
	worker    string
	headers   http.Header // of every call
	posts     http.Header // of a post
	calls     *http.Transport
	heartbeat *http.Transport
	pingLimit time.Duration
	conns     *conns
	secrets   *redact.Secrets
}

// New returns a Client. Nothing is sent before the first call.
func New(cfg Config) *Client {
	if cfg.PingInterval <= 0 {
		cfg.PingInterval = defaultPingInterval
	}
	headers := http.Header{}
	if cfg.Key != "" {
		headers.Set("Authorization", cfg.Key)
	}
	if cfg.UserAgent != "" {
		headers.Set("User-Agent", cfg.UserAgent)
	}
	posts := headers.Clone()
	// The body is JSON; the platform is used to this type for it, and to a header named charset.
	posts.Set("Content-Type", "application/x-www-form-urlencoded")
	posts["charset"] = []string{"utf-8"}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	}
	open := &conns{dial: cfg.Dial, open: map[*conn]bool{}}
	return &Client{
		urls:    cfg.URLs,
		worker:  cfg.WorkerID,
		headers: headers,
		posts:   posts,
		// A job may run while the result before it is on its way, and two polls are always open.
		calls: newTransport(max(2*cfg.Concurrency+2, minIdleConns), open.dialContext),
		// Heartbeats share no connection with anything that could keep them waiting.
		heartbeat: newTransport(1, open.dialContext),
		pingLimit: max(cfg.PingInterval, minPingLimit),
		conns:     open,
		secrets:   redact.New(cfg.Key),
	}
}

// Close drops the connections that are kept alive.
func (c *Client) Close() {
	c.calls.CloseIdleConnections()
	c.heartbeat.CloseIdleConnections()
}

func newTransport(idle int, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           idle,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxAnswerHeader,
		// All calls share one HTTP/2 connection. If it dies without a word, only a ping notices.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:  15 * time.Second,
			PingTimeout:      10 * time.Second,
			WriteByteTimeout: 30 * time.Second,
		},
	}
}

// Ping tells the platform that the worker lives and which jobs it holds.
func (c *Client) Ping(ctx context.Context, jobs []string) error {
	url := c.urls.Heartbeat(c.worker, jobs)
	if url == "" {
		return protocol.ErrNoURL
	}
	_, err := c.send(ctx, c.heartbeat, request{call: "ping", method: http.MethodGet, url: url, limit: c.pingLimit})
	return err
}

// Unhealthy tells the platform which check has failed, before the worker ends for it. It makes no call where there is
// no URL for it, or no key: as the official worker, it reports only to the platform.
func (c *Client) Unhealthy(ctx context.Context, check, reason string) error {
	url := c.urls.Unhealthy(c.worker, check, reason)
	if url == "" || c.headers.Get("Authorization") == "" {
		return nil
	}
	_, err := c.send(ctx, c.heartbeat, request{call: "unhealthy ping", method: http.MethodGet, url: url, limit: unhealthyLimit})
	return err
}
