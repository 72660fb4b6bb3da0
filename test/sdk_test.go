package test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seen is what the client scripts under sdk/ report.
type seen struct {
	FirstStatus   string          `json:"first_status"`
	Status        string          `json:"status"`
	Output        json.RawMessage `json:"output"`
	RunSync       json.RawMessage `json:"run_sync"`
	RunSyncStatus string          `json:"run_sync_status"` // JavaScript only
	Stream        []string        `json:"stream"`
	Running       string          `json:"running"`
	Health        health          `json:"health"`
	Purge         struct {
		Removed int    `json:"removed"`
		Status  string `json:"status"`
	} `json:"purge_queue"`
	Cancel    job    `json:"cancel"`
	Cancelled string `json:"cancelled"`
}

// clients are the official client libraries.
var clients = []struct {
	name        string
	interpreter func(*testing.T) string
	script      string
	runSync     bool // the library has one
}{
	{"python", python, "sdk/python/client.py", true},
	{"python asyncio", python, "sdk/python/async_client.py", false},
	{"javascript", node, "sdk/js/client.mjs", true},
}

func TestOfficialClients(t *testing.T) {
	t.Parallel()
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range kinds {
				t.Run(kind.file, func(t *testing.T) {
					t.Parallel()
					server := serveHandler(t, kind.file)
					script := runToEnd(t, command{
						args: []string{client.interpreter(t), client.script},
						env:  []string{"RUNPOD_ENDPOINT_BASE_URL=" + server.base},
					})
					require.Zero(t, script.wait(t), script.stderr)
					got := decode[seen](t, []byte(script.stdout.String()))

					require.Contains(t, []string{"IN_QUEUE", "IN_PROGRESS", "COMPLETED"}, got.FirstStatus)
					require.Equal(t, "COMPLETED", got.Status)
					requireOutput(t, kind.streams, got.Output)
					if client.runSync {
						requireOutput(t, kind.streams, got.RunSync)
					}
					if kind.streams {
						require.Equal(t, []string{"a", "b", "c"}, got.Stream)
					} else {
						require.Empty(t, got.Stream)
					}
					require.Equal(t, "IN_PROGRESS", got.Running)
					require.Equal(t, 1, got.Health.Jobs.InProgress)
					require.Equal(t, 1, got.Health.Jobs.InQueue)
					require.GreaterOrEqual(t, got.Health.Jobs.Completed, 2)
					for _, state := range []string{"idle", "initializing", "ready", "running", "throttled", "unhealthy"} {
						require.Contains(t, got.Health.Workers, state)
					}
					require.Equal(t, 1, got.Purge.Removed)
					require.Equal(t, "completed", got.Purge.Status)
					require.Equal(t, "CANCELLED", got.Cancel.Status)
					require.Equal(t, "CANCELLED", got.Cancelled)
					require.True(t, server.alive())
				})
			}
		})
	}
}

// requireOutput checks the output of a job with the items a, b and c. As hosted, that of a stream
// without return_aggregate_stream is empty.
func requireOutput(t *testing.T, streams bool, output json.RawMessage) {
	t.Helper()
	if streams {
		require.Contains(t, []string{"", "null", "[]"}, string(output))
		return
	}
	require.JSONEq(t, `{"items":["a","b","c"]}`, string(output))
}

// A worker that knows nothing of this project takes its jobs from serve.
func TestOfficialWorkerAttached(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.file, func(t *testing.T) {
			t.Parallel()
			server := serve(t, "--no-worker", "--print-env", "--worker-id", "mine")
			env := server.workerEnv()
			require.Contains(t, env, "RUNPOD_POD_ID=mine")
			official := officialWorker(t, env, kind.file)

			id := server.run(`{"items":["a","b","c"]}`)
			ended := server.streamAll(id)
			require.Equal(t, "COMPLETED", ended.Status, official.stdout)
			if kind.streams {
				require.Equal(t, []string{"a", "b", "c"}, ended.items(t))
			}
			ended = server.status(id)
			requireOutput(t, kind.streams, ended.Output)
			require.Equal(t, "mine", ended.WorkerID)
			require.NotNil(t, ended.DelayTime)

			failed := server.runSync(`{"n":1}`) // a handler without its items raises a KeyError
			require.Equal(t, "FAILED", failed.Status)
			require.Contains(t, failed.Error, "items")
			require.True(t, official.alive())
		})
	}
}

func TestClientsArePinned(t *testing.T) {
	t.Parallel()
	requirements, err := os.ReadFile("sdk/python/requirements.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(requirements)) {
		require.Regexp(t, `^[a-z]+==[0-9.]+(;.*)?\n$`, line)
	}
	require.Contains(t, string(requirements), "runpod==1.12.0\n")
	lock, err := os.ReadFile("sdk/js/package-lock.json")
	require.NoError(t, err)
	require.NotContains(t, string(lock), "resolved", "a lock that names hosts installs from no mirror")
	require.Contains(t, string(lock), `"runpod-sdk": "1.1.2"`)
	require.Contains(t, string(lock), `"openai": "6.49.0"`)
}
