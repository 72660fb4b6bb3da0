package config

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestWorkerFrom(t *testing.T) {
	defaults := Worker{ID: "w", PingInterval: 10 * time.Second, InitTimeout: 420 * time.Second}
	with := func(change func(*Worker)) Worker {
		w := defaults
		change(&w)
		return w
	}
	tests := []struct {
		name    string
		env     map[string]string
		want    Worker
		wantErr string
	}{
		{name: "nothing but an id", want: defaults},
		{
			name: "the platform's variables",
			env: map[string]string{
				GetJob: "http://a/job-take/$ID?x", PostOutput: "http://b", PostStream: "http://c", Ping: "http://d",
				EndpointID: "ep", AIAPIKey: "key", PingInterval: "500", InitTimeout: "60",
			},
			want: with(func(w *Worker) {
				w.URLs = protocol.Templates{GetJob: "http://a/job-take/$ID?x", PostOutput: "http://b", PostStream: "http://c", Ping: "http://d"}
				w.EndpointID, w.APIKey = "ep", "key"
				w.PingInterval, w.InitTimeout = 500*time.Millisecond, time.Minute
			}),
		},
		{name: "no limit for loading", env: map[string]string{InitTimeout: "0"}, want: with(func(w *Worker) { w.InitTimeout = 0 })},
		{name: "an interval in words", env: map[string]string{PingInterval: "10s"}, wantErr: `RUNPOD_PING_INTERVAL="10s" is not a number of milliseconds`},
		{name: "no URL", env: map[string]string{GetJob: "garbage"}, wantErr: "RUNPOD_WEBHOOK_GET_JOB: is no URL: want http:// or https:// and a host"},
		{name: "a URL of another kind", env: map[string]string{PostOutput: "ftp://x/$ID"}, wantErr: "RUNPOD_WEBHOOK_POST_OUTPUT: is no URL: want http:// or https:// and a host"},
		{name: "a key with a line break", env: map[string]string{AIAPIKey: "key\n"}, wantErr: "RUNPOD_AI_API_KEY holds a line break or another control character, which no header can carry"},
		{name: "a negative limit", env: map[string]string{InitTimeout: "-1"}, wantErr: `RUNPOD_INIT_TIMEOUT="-1" is not a number of seconds`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := WorkerFrom(func(name string) (string, bool) {
				if name == PodID {
					return "w", true
				}
				v, ok := tt.env[name]
				return v, ok
			})
			if tt.wantErr != "" {
				require.EqualError(t, err, tt.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestWorkerFrom_InventsAnID(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	a, err := WorkerFrom(none)
	require.NoError(t, err)
	b, err := WorkerFrom(none)
	require.NoError(t, err)
	require.NotEmpty(t, a.ID)
	require.NotEqual(t, a.ID, b.ID)
}

func TestVars_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	for _, v := range Vars {
		require.Contains(t, string(page), "| `"+v.Name+"` | "+v.Default+" | "+v.Meaning+" |")
	}
}
