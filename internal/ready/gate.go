package ready

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"runpodctl-worker/internal/mistake"
)

const (
	checkLimit = 5 * time.Second // for one answer
	// While readiness is awaited, the time between two looks grows between these.
	firstLook   = 50 * time.Millisecond
	longestLook = time.Second
	stillWaits  = 30 * time.Second // between two lines that say what is awaited

	watchInterval = 10 * time.Second
	// lostAfter is how many failures in a row mean that readiness is lost: one may be a hiccup.
	lostAfter = 3
)

var errSlow = fmt.Errorf("no answer within %s", checkLimit)

// LostError says that something which was ready is so no longer.
type LostError struct {
	Probe string
	Err   error // the last of several failures
}

func (e *LostError) Error() string { return "readiness lost: " + e.Probe + ": " + e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// Gate is open while all of its probes hold.
type Gate struct {
	probes []Probe
	log    *slog.Logger
}

// NewGate returns a gate of some probes.
func NewGate(log *slog.Logger, probes ...Probe) *Gate { return &Gate{probes: probes, log: log} }

// Await returns when all probes hold at a time. It says now and then which do not, and why.
func (g *Gate) Await(ctx context.Context) error {
	began := time.Now()
	remind := time.NewTicker(stillWaits)
	defer remind.Stop()
	why := errors.New("it did not answer in time") // unless a check that ctx did not cut short says more
	for pause := firstLook; ; pause = min(2*pause, longestLook) {
		found := g.check(ctx)
		first := firstFailure(found)
		if first < 0 {
			return nil
		}
		if ctx.Err() == nil {
			why = fmt.Errorf("%s: %w", g.probes[first], found[first])
		}
		select {
		case <-remind.C:
			g.complain("Waiting for readiness.", found, slog.Duration("since", time.Since(began).Round(time.Second)))
		default:
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w; what it serves is not ready: %w", context.Cause(ctx), why)
		}
	}
}

// Watch returns a *LostError when a probe no longer holds, or nil when ctx ends. busy tells whether a job runs: a
// program with a job may well be too busy to answer, and must not be taken for lost.
func (g *Gate) Watch(ctx context.Context, busy func() bool) error {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	inARow := make([]int, len(g.probes))
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		wasBusy := busy()
		found := g.check(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for i, err := range found {
			switch {
			case err == nil:
				inARow[i] = 0
				continue
			case errors.Is(err, errSlow) && (wasBusy || busy()):
				continue
			}
			if inARow[i]++; inARow[i] == lostAfter {
				return &LostError{Probe: g.probes[i].String(), Err: err}
			}
		}
		g.complain("Readiness fails.", found)
	}
}

// check asks all probes at once, and returns what each had to say.
func (g *Gate) check(ctx context.Context) []error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, errSlow)
	defer cancel()
	found := make([]error, len(g.probes))
	var asking sync.WaitGroup
	for i, probe := range g.probes {
		asking.Go(func() {
			if bad := mistake.Catch(func() { found[i] = probe.Check(ctx) }); bad != nil {
				found[i] = bad
			}
			if found[i] != nil && ctx.Err() != nil {
				found[i] = context.Cause(ctx)
			}
		})
	}
	asking.Wait()
	return found
}

func firstFailure(found []error) int {
	for i, err := range found {
		if err != nil {
			return i
		}
	}
	return -1
}

func (g *Gate) complain(msg string, found []error, attrs ...slog.Attr) {
	for i, err := range found {
		if err != nil {
			g.log.LogAttrs(context.Background(), slog.LevelWarn, msg,
				append(attrs, slog.String("probe", g.probes[i].String()), slog.Any("error", err))...)
		}
	}
}
