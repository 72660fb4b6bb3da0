package cli

import (
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
