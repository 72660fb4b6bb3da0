package gateway

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/lazy"
)

// keys are what a program may send as its Authorization. Other users of this machine can reach the port as well.
type keys struct {
	main   string // of its environment; empty: anything will do
	stored []string
}

var storedKey = lazy.Regexp(`(?m)^\s*api_key\s*=\s*["']([^"'\n]+)["']`)

// readKeys looks into the environment, and where the official SDK looks first for some of its calls.
func readKeys(lookup func(string) string) keys {
	k := keys{main: lookup(config.AIAPIKey)}
	text, err := os.ReadFile(filepath.Join(lookup("HOME"), ".runpod", "config.toml"))
	if err != nil || lookup("HOME") == "" {
		return k
	}
	for _, match := range storedKey().FindAllSubmatch(text, -1) {
		k.stored = append(k.stored, string(match[1]))
	}
	return k
}

// admit makes one key of all that are good.
func (k keys) admit(r *http.Request) {
	for _, key := range k.stored {
		if r.Header.Get("Authorization") == key {
			r.Header.Set("Authorization", k.main)
		}
	}
}

// caller is what a call tells of who makes it.
type caller struct {
	official bool // the official SDK, whose ways are known
	idle     bool // it says that it works on nothing
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller) // nobody is nobody in particular
	return c
}

// guard keeps browsers out, whose pages may come from anywhere, and notes who calls.
func (g *Gateway) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != g.addr || r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Origin") != "" {
			http.Error(w, "this address is for the worker's own program", http.StatusForbidden)
			return
		}
		g.keys.admit(r)
		g.setDeadline(w, r)
		c := caller{
			official: strings.HasPrefix(r.UserAgent(), "RunPod-Python-SDK/"),
			idle:     strings.Contains(r.RequestURI, "job_in_progress=0"),
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, c)))
	})
}

// setDeadline bounds the answer of a call that may bring a job. A report may be held up for as long as the platform is
// out of reach, and the connection remembers the limit of the call before.
func (g *Gateway) setDeadline(w http.ResponseWriter, r *http.Request) {
	var deadline time.Time
	if r.Method == http.MethodGet {
		deadline = time.Now().Add(max(g.opts.TakeHold, g.opts.StopHold) + g.opts.ReadTime)
	}
	// It fails only where there is no connection to set it for.
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
}
