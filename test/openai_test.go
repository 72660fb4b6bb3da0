package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// openaiSeen is what the scripts report that drive the official OpenAI clients.
type openaiSeen struct {
	Models        []string      `json:"models"`
	Chat          string        `json:"chat"`
	Words         []string      `json:"words"`
	Seconds       float64       `json:"seconds"` // from the first to the last of them
	Unknown       string        `json:"unknown"`
	Crash         openaiFailure `json:"crash"`
	CrashInStream openaiFailure `json:"crash_in_stream"`
}

type openaiFailure struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func TestOfficialOpenAIClients(t *testing.T) {
	t.Parallel()
	for _, client := range []struct {
		name        string
		interpreter func(*testing.T) string
		script      string
	}{
		{"python", python, "sdk/python/openai_client.py"},
		{"javascript", node, "sdk/js/openai_client.mjs"},
	} {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, "--python", python(t), "--handler", abs(t, "../testdata/handlers/openai.py"))
			script := runToEnd(t, command{args: []string{client.interpreter(t), client.script, server.base + "/local/openai/v1"}})
			require.Zero(t, script.wait(t), script.stderr)
			got := decode[openaiSeen](t, []byte(script.stdout.String()))

			require.Equal(t, []string{"parrot"}, got.Models)
			require.Equal(t, "hello parrot ", got.Chat)
			require.Equal(t, []string{"one ", "two ", "three "}, got.Words)
			require.Greater(t, got.Seconds, 0.5, "the words are to come one by one")
			require.Equal(t, "the model crow does not exist", got.Unknown)
			for _, crash := range []openaiFailure{got.Crash, got.CrashInStream} {
				require.Equal(t, 500, crash.Status)
				require.Contains(t, crash.Message, "the parrot fell silent")
			}
			// The script left a stream of a minute; its job was cancelled, or the calls after it had waited.
			require.Equal(t, 2, server.health().Jobs.Failed)
			require.True(t, server.alive())
		})
	}
}
