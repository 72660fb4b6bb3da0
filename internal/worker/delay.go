package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"

	"runpodctl-worker/internal/protocol"
)

// busyWait is how long the platform wants to be left alone after a 429 that does not say.
const busyWait = 5 * time.Second

// delays grow from first to about longest, each up to a quarter shorter or longer than planned, so that
// workers that failed together do not come back together.
func delays(first, longest time.Duration, factor float64) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{
		InitialInterval:     first,
		MaxInterval:         longest,
		Multiplier:          factor,
		RandomizationFactor: 0.25,
	}
}

// asked is how long the platform itself wants us to wait after an error; 0 if it does not say.
func asked(err error) time.Duration {
	var status *protocol.StatusError
	if !errors.As(err, &status) {
		return 0
	}
	wait := status.RetryAfter
	if wait == 0 && status.Code == http.StatusTooManyRequests {
		wait = busyWait
	}
	if wait > 0 {
		wait += rand.N(wait/20 + 1)
	}
	return wait
}

// sleep waits; it returns false when ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
