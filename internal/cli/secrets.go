package cli

import (
	"fmt"
	"runtime/debug"

	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/redact"
)

// secretsOf are the keys that the environment holds.
func secretsOf(lookup config.Lookup) *redact.Secrets {
	secrets := redact.New()
	if lookup == nil {
		return secrets
	}
	for _, name := range config.Secrets {
		if value, ok := lookup(name); ok {
			secrets.Add(value)
		}
	}
	return secrets
}

// guard turns a panic into an error: what the runtime prints of one would go past everything that keeps secrets.
func (s *session) guard(run func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a mistake in this program: %v\n%s", p, debug.Stack())
		}
	}()
	return run()
}
