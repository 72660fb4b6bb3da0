package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what a header can ask for: whatever it says, the worker comes back.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header, which holds seconds or a date. It is 0 for anything else.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds < maxRetryAfter.Seconds()) { // also true of NaN, which must not be converted
			return maxRetryAfter
		}
		wait = time.Duration(seconds * float64(time.Second))
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
