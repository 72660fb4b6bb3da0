package test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FG-01, FG-17: a check of the handler's own that fails ends the worker and all below it, behind either door.
func TestFG01RegisteredCheckThatFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ check, reason string }{
		"function":  {"failing", "no model here"},
		"coroutine": {"failing_later", "no model here"},
	} {
		for door, flags := range doors {
			t.Run(name+" "+door, func(t *testing.T) {
				t.Parallel()
				child := filepath.Join(t.TempDir(), "child")
				w := runThrough(t, flags, with(checked, "CHECK="+row.check, "CHILD="+child), "check.py")
				ping := w.unhealthy(t)
				require.Equal(t, row.check, ping.Query.Get("check"))
				require.Contains(t, ping.Query.Get("reason"), row.reason)
				requireGone(t, pidsIn(t, child))
			})
		}
	}
}

// FG-17: checks that behave oddly are understood.
func TestFG17RegisteredChecksThatMisbehave(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("größe ", 400)
	for name, row := range map[string]struct {
		check, reason string
		names         string // what the reason starts with; empty where the check passes
	}{
		"a long reason": {"failing", long, "größe größe"},
		"two lines":     {"failing", "first\nsecond", "first"},
		"ends it all":   {"leaving", "", "it ended the handler's process"},
		"loud":          {"loud", "", ""},
		"good":          {"good", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := runThrough(t, doors["shim"], with(checked, "CHECK="+row.check, "REASON="+row.reason), "check.py")
			if row.names == "" {
				w.Offer(`{"id":"j1","input":"fit"}`)
				require.Equal(t, `"fit"`, string(w.result(t, "j1").Output))
				return
			}
			ping := w.unhealthy(t)
			require.Equal(t, row.check, ping.Query.Get("check"))
			reason := ping.Query.Get("reason")
			require.True(t, strings.HasPrefix(reason, row.names), reason)
			require.True(t, utf8.ValidString(reason))
			require.LessOrEqual(t, utf8.RuneCountInString(reason), 256)
			if row.reason == long {
				require.Equal(t, string([]rune(long)[:256]), reason)
			}
		})
	}
}
