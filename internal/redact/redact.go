// Package redact takes secrets out of texts before anybody sees them: those that the program was told, wherever they
// stand, and what has the form of one, such as a password in a URL.
package redact

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret was.
const Mark = "[REDACTED]"

// shortest is the length of a secret below which it is no secret, and its letters may stand in any word.
const shortest = 6

// Secrets are the texts that nobody may see. A nil *Secrets knows none, and goes by the forms alone.
type Secrets struct {
	mu     sync.RWMutex
	values []string // longest first, so that none is cut by one that is a part of it
}

// New returns the Secrets for some values.
func New(values ...string) *Secrets {
	s := new(Secrets)
	s.Add(values...)
	return s
}

// Add makes more values known. What is empty, or too short to be a secret, is left out.
func (s *Secrets) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		value = strings.TrimSpace(value)
		if scheme, token, ok := strings.Cut(value, " "); ok && strings.EqualFold(scheme, "bearer") {
			value = strings.TrimSpace(token) // a header may be given whole
		}
		if len(value) < shortest {
			continue
		}
		s.values = append(s.values, value, url.QueryEscape(value), url.PathEscape(value), inJSON(value))
	}
	slices.SortFunc(s.values, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	s.values = slices.Compact(s.values)
}

// inJSON is a value as it stands between the quotes of a JSON string.
func inJSON(value string) string {
	quoted, err := json.Marshal(value)
	if err != nil { // a string always encodes
		return value
	}
	return string(quoted[1 : len(quoted)-1])
}

// known replaces the values.
func (s *Secrets) known(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, value := range s.values {
		text = strings.ReplaceAll(text, value, Mark)
	}
	return text
}

// String replaces the values, and all that has the form of a secret.
func (s *Secrets) String(text string) string { return forms(s.known(text)) }

// Error is err with a text that anybody may see; errors.Is and As still find what is in it.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := s.String(text)
	if clean == text {
		return err
	}
	return &cleaned{clean, err}
}

type cleaned struct {
	text string
	err  error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.err }
