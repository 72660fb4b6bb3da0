package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogger(t *testing.T) {
	endpoint := map[string]string{"RUNPOD_ENDPOINT_ID": "abc"}
	tests := []struct {
		name, level, format string
		env                 map[string]string
		color               bool
		want                string
	}{
		{name: "text, as the SDK has it", want: "INFO   | j1 | Started. | n=2\nWARN   | odd <b>\n"},
		{name: "JSON on the platform", env: endpoint, want: `{"requestId":"j1","message":"Started. | n=2","level":"INFO"}` + "\n" + `{"requestId":null,"message":"odd <b>","level":"WARN"}` + "\n"},
		{name: "text although on the platform", env: endpoint, format: "text", want: "INFO   | j1 | Started. | n=2\nWARN   | odd <b>\n"},
		{name: "text by the environment", env: map[string]string{"RUNPOD_ENDPOINT_ID": "abc", "RUNPODCTL_WORKER_LOG_FORMAT": "text"}, want: "INFO   | j1 | Started. | n=2\nWARN   | odd <b>\n"},
		{name: "JSON by the environment", level: "WARN", env: map[string]string{"RUNPODCTL_WORKER_LOG_FORMAT": "json"}, want: `{"requestId":null,"message":"odd <b>","level":"WARN"}` + "\n"},
		{name: "a flag beats the environment", level: "WARN", format: "text", env: map[string]string{"RUNPODCTL_WORKER_LOG_FORMAT": "json"}, want: "WARN   | odd <b>\n"},
		{name: "auto by flag beats it too", level: "WARN", format: "auto", env: map[string]string{"RUNPODCTL_WORKER_LOG_FORMAT": "json"}, want: "WARN   | odd <b>\n"},
		{name: "a bad format in the environment", level: "WARN", env: map[string]string{"RUNPODCTL_WORKER_LOG_FORMAT": "xml"}, want: "WARN   | odd <b>\n"},
		{name: "in colour", color: true, want: "INFO   | j1 | Started. | n=2\n\x1b[33mWARN   | odd <b>\x1b[0m\n"},
		{name: "JSON has no colour", env: endpoint, level: "WARN", color: true, want: `{"requestId":null,"message":"odd <b>","level":"WARN"}` + "\n"},
		{name: "a level by flag", level: "warn", want: "WARN   | odd <b>\n"},
		{name: "a level by the environment", env: map[string]string{"RUNPOD_LOG_LEVEL": "WARN", "RUNPOD_DEBUG_LEVEL": "DEBUG"}, want: "WARN   | odd <b>\n"},
		{name: "Python's name of a level", env: map[string]string{"RUNPOD_LOG_LEVEL": " warning "}, want: "WARN   | odd <b>\n"},
		{name: "the format by the environment", env: map[string]string{"RUNPODCTL_WORKER_LOG_FORMAT": "json"}, level: "WARN", want: `{"requestId":null,"message":"odd <b>","level":"WARN"}` + "\n"},
		{name: "a bad level in the environment warns", env: map[string]string{"RUNPOD_DEBUG_LEVEL": "5"}, want: "WARN   | RUNPOD_DEBUG_LEVEL=\"5\" is none of ERROR, WARN, INFO, DEBUG; using INFO\nINFO   | j1 | Started. | n=2\nWARN   | odd <b>\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			log, err := newLogger(&out, func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }, nil, tt.level, tt.format, tt.color)
			require.NoError(t, err)
			log.With("job", "j1").Info("Started.", "n", 2)
			log.Warn("odd <b>")
			log.Debug("hidden")
			require.Equal(t, tt.want, out.String())
		})
	}
}

func TestLogger_RefusesFlagsThatMakeNoSense(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	_, err := newLogger(nil, none, nil, "LOUD", "auto", false)
	require.ErrorContains(t, err, `--log-level "LOUD"`)
	_, err = newLogger(nil, none, nil, "", "xml", false)
	require.ErrorContains(t, err, `--log-format "xml"`)
}

func TestShorten_CutsTheMiddleOnRunes(t *testing.T) {
	long := strings.Repeat("é", maxMessage) + strings.Repeat("ü", maxMessage)
	got := shorten(long, maxMessage)
	require.True(t, strings.HasPrefix(got, "é") && strings.HasSuffix(got, "ü"))
	require.Contains(t, got, "TRUNCATED (4096 characters)")
	require.Less(t, len([]rune(got)), maxMessage+100)
}
