package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRegisteredChecks_IDs(t *testing.T) {
	names := []string{"good", "good", "two words", "<__main__.Probe object at 0x7f1b1d5d1e50>", "<lambda>"}
	var ids []string
	for _, c := range registeredChecks(names, 0, nil) {
		ids = append(ids, c.ID)
	}
	require.Equal(t, []string{
		"yours.good", "yours.good#2", "yours.two_words", "yours.<__main__.Probe_object>", "yours.<lambda>",
	}, ids)
}
