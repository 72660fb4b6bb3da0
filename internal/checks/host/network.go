package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"runpodctl-worker/internal/checks"
)

const (
	// attemptLimit is the least that one attempt may take; the first may take half of the whole budget.
	attemptLimit = time.Second
	// closeSlack is the time above its budget that the check has to say what it found.
	closeSlack = time.Second

	firstPause   = 100 * time.Millisecond
	longestPause = time.Second
)

// Network checks that the host of the job API can be reached, or another target, "HOST:PORT". It retries until its time
// is over: on a cold start the network may come up after the container.
func Network(cfg checks.Config, where string) checks.Check {
	return checks.Check{
		ID: "network", Name: "_network_check", Title: "Network", Phase: checks.Start, Builtin: true,
		Limit: cfg.NetworkTimeout.Value + closeSlack,
		Run:   network{cfg, where, (&net.Dialer{}).DialContext}.run,
	}
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

type network struct {
	cfg   checks.Config
	where string
	dial  dialFunc
}

func (n network) run(ctx context.Context) checks.Result {
	budget := n.cfg.NetworkTimeout
	if budget.Err != nil {
		return checks.Misread(budget.Err)
	}
	target, err := targetOf(n.cfg, n.where)
	if err != nil {
		return checks.Misread(err)
	}
	route, err := routeTo(n.cfg.Lookup, target, n.dial)
	if err != nil {
		return checks.Misread(err)
	}
	ctx, cancel := context.WithTimeout(ctx, budget.Value)
	defer cancel()
	attempts, took, err := connect(ctx, route)
	res := checks.Result{
		Threshold: &checks.Threshold{Value: budget.Value.Seconds(), Text: fmt.Sprintf("a connection within %s", budget.Value), Origin: budget.Origin},
		Facts: []checks.Fact{
			{Name: "target", Value: target.address()},
			{Name: "target_from", Value: target.origin},
			{Name: "proxy", Value: route.proxy, Text: route.proxyText()},
			{Name: "attempts", Value: attempts},
		},
	}
	if err != nil {
		res.Status, res.Remedy = target.severity, remedyOf(err, target, route)
		res.Summary = failure(err, target, route)
		res.Said = failureSaid(err, target, budget.Value)
		return res
	}
	ms := float64(took.Microseconds()) / 1000
	res.Facts = append(res.Facts, checks.Fact{Name: "connect_ms", Value: ms, Text: fmt.Sprintf("%.1f ms", ms)})
	res.Summary = fmt.Sprintf("connected to %s%s in %.0f ms", target.address(), route.through(), ms)
	res.Said = fmt.Sprintf("Network connectivity passed: Connected to %s (%.0fms)", target.address(), ms)
	return res
}

// connect tries until a connection stands or ctx ends. It returns how often it tried, and how long the last one took.
func connect(ctx context.Context, r route) (attempts int, took time.Duration, err error) {
	pauses := backoff.ExponentialBackOff{
		InitialInterval: firstPause, MaxInterval: longestPause, Multiplier: 2, RandomizationFactor: 0.25,
	}
	for {
		attempts++
		began := time.Now()
		lastErr := attempt(ctx, r)
		if lastErr == nil {
			return attempts, time.Since(began), nil
		}
		if err == nil || ctx.Err() == nil { // what was cut short at the end says less than what came before
			err = lastErr
		}
		select {
		case <-time.After(pauses.NextBackOff()):
		case <-ctx.Done():
			return attempts, 0, err
		}
	}
}

func attempt(ctx context.Context, r route) error {
	deadline, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, max(attemptLimit, time.Until(deadline)/2))
	defer cancel()
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

// failure says what did not work: the name, or the connection.
func failure(err error, t target, r route) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("DNS: cannot resolve %s: %s", dns.Name, dns.Err)
	}
	return fmt.Sprintf("no connection to %s%s: %s", t.address(), r.through(), reason(err))
}

// reason is the innermost cause in few words.
func reason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Error()
	}
	if isTimeout(err) {
		return "no answer"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		if sys, ok := errors.AsType[*os.SyscallError](op.Err); ok {
			return sys.Err.Error()
		}
		return op.Err.Error()
	}
	return err.Error()
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout()
}

// failureSaid is the failure in the SDK's words.
func failureSaid(err error, t target, budget time.Duration) string {
	_, dns := errors.AsType[*net.DNSError](err)
	switch {
	case isTimeout(err) && !dns:
		return fmt.Sprintf("Network connectivity failed: Timeout connecting to %s (%ss)", t.address(), short(budget.Seconds()))
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Network connectivity failed: Connection refused to " + t.address()
	}
	return "Network connectivity check failed: " + reason(err)
}

func remedyOf(err error, t target, r route) string {
	if _, dns := errors.AsType[*net.DNSError](err); dns {
		return "Look at the name servers in /etc/resolv.conf, and at the DNS settings of the container; connections by address may work all the same."
	}
	if r.proxy != "" {
		return "See whether the proxy " + r.proxy + " runs and lets this box connect to " + t.address() + "; NO_PROXY names who needs none."
	}
	return "See whether a firewall or the provider keeps this box from " + t.address() + "; HTTPS_PROXY names a proxy."
}
