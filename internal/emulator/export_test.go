package emulator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/labstack/echo/v4"
)

// Routes are the methods and paths that are answered, paths as echo writes them.
func (e *Emulator) Routes() map[string][]string {
	routes := map[string][]string{}
	for _, r := range e.routes().Routes() {
		routes[r.Path] = append(routes[r.Path], r.Method)
	}
	return routes
}

// HasRateLimit reports whether calls of a path can be answered 429.
func HasRateLimit(path string) bool {
	_, ok := hostedRates[operation(path)]
	return ok
}

// Submissions is how many requests of batches are kept as they were sent.
func (e *Emulator) Submissions() (n int) {
	for _, ep := range e.endpoints {
		ep.batches.mu.Lock()
		for _, b := range ep.batches.list {
			for _, r := range b.requests {
				if r.submission != nil {
					n++
				}
			}
		}
		ep.batches.mu.Unlock()
	}
	return n
}

// StopBoxes is for how many workers stops may be kept.
func (e *Emulator) StopBoxes() (n int) {
	for _, ep := range e.endpoints {
		ep.stops.mu.Lock()
		n += len(ep.stops.boxes)
		ep.stops.mu.Unlock()
	}
	return n
}

// OpenAIInput is the input of the job that a call becomes.
func OpenAIInput(body string) (json.RawMessage, error) {
	c := echo.New().NewContext(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)), nil)
	c.SetParamNames("*")
	c.SetParamValues("completions")
	s, _, err := readOpenAI(c, int64(len(body)))
	if err != nil {
		return nil, err
	}
	return s.Input, nil
}

// OpenAIAnswer is the answer to a call whose job yields one item.
func OpenAIAnswer(item json.RawMessage, streams bool) string {
	w := httptest.NewRecorder()
	(&openaiAnswer{w: w, streams: streams}).item(item)
	return w.Body.String()
}
