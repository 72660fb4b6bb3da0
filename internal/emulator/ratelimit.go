package emulator

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"runpodctl-worker/internal/protocol/server"
)

// rateWindow is the time that a limit of requests is for.
const rateWindow = 10 * time.Second

// rate is what one operation may be asked for; 0 is no limit.
type rate struct{ requests, concurrent int }

// hostedRates are those that the platform publishes. It raises them with the number of running workers, by a
// quota that it does not publish.
var hostedRates = map[string]rate{
	"run":         {1000, 200},
	"runsync":     {2000, 400},
	"status":      {2000, 400},
	"stream":      {2000, 400},
	"cancel":      {100, 20},
	"purge-queue": {2, 0},
	"openai":      {2000, 400},
	"requests":    {10, 2},
}

// limiter counts the calls of one endpoint.
type limiter struct {
	now   func() time.Time
	mu    sync.Mutex
	usage map[string]*usage // by operation
}

type usage struct {
	rate
	since  time.Time // the start of the window
	count  int       // of calls in it
	active int
}

func newLimiter(now func() time.Time) *limiter {
	l := &limiter{now: now, usage: map[string]*usage{}}
	for operation, r := range hostedRates {
		l.usage[operation] = &usage{rate: r}
	}
	return l
}

// admit lets a call in, or answers 429. Who is let in must call leave at the end.
func (l *limiter) admit(c echo.Context) (leave func(), ok bool) {
	name := operation(c.Path())
	refusal, retryAfter := l.enter(name)
	if refusal != "" {
		c.Response().Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(retryAfter.Seconds()))))
		server.WriteProblem(c.Response(), http.StatusTooManyRequests, refusal)
		return nil, false
	}
	return func() { l.leave(name) }, true
}

func (l *limiter) enter(name string) (refusal string, retryAfter time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.usage[name]
	if u == nil {
		return "", 0
	}
	now := l.now()
	if past := now.Sub(u.since); past >= rateWindow || past < 0 {
		u.since, u.count = now, 0
	}
	switch {
	case u.count >= u.requests:
		return fmt.Sprintf("rate limit exceeded: %d requests in %s to /%s", u.requests, rateWindow, name), u.since.Add(rateWindow).Sub(now)
	case u.concurrent > 0 && u.active >= u.concurrent:
		return fmt.Sprintf("rate limit exceeded: %d requests at a time to /%s", u.concurrent, name), time.Second
	}
	u.count++
	u.active++
	return "", 0
}

func (l *limiter) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.usage[name]; u != nil {
		u.active--
	}
}

// operation is what a route counts as.
func operation(route string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(route, "/v2/:endpoint"), "/"), "/")
	if name == "status-sync" {
		return "status"
	}
	return name
}
