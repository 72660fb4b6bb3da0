package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// The trial with fewer kills. What it is about, its verdict says.
func TestPS01KilledAgainAndAgain(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "runpodctl-worker")
	build := exec.Command("go", "build", "-o", bin, "../../cmd/runpodctl-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	handler, err := filepath.Abs("../handlers/chaos.py")
	require.NoError(t, err)
	var table bytes.Buffer
	err = kills(options{
		bin: bin, handler: handler, kills: 10, concurrency: slots, seed: uint64(time.Now().UnixNano()), limit: 10 * time.Minute, out: &table,
	}, dir)
	require.NoError(t, err, table.String())
}

// A webhook that is delivered again, since its receiver was slow, is no second end.
func TestNews(t *testing.T) {
	n, err := listen()
	require.NoError(t, err)
	defer n.close()
	for _, body := range []string{`{"id":"a","output":1}`, `{"id":"a","output":1}`, `{"id":"b","output":1}`, `{"id":"b","output":2}`} {
		resp, err := http.Post(n.url, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	jobs, doubled := n.total()
	require.Equal(t, 2, jobs)
	require.Equal(t, 1, doubled)
}

func TestJudge(t *testing.T) {
	plain, stream := work{N: 7, Pad: 2}, work{N: 7, Items: 2}
	const killed = `"the program ended (killed by SIGKILL, likely out of memory); its last lines:\nx"`
	for name, row := range map[string]struct {
		job   job
		state state
		wrong string
	}{
		"its own result":        {job{work: plain}, state{Status: protocol.Completed, Output: json.RawMessage(`{"pad":"xx","n":7}`)}, ""},
		"its own stream":        {job{work: stream}, state{Status: protocol.Completed, Output: json.RawMessage(`[{"n":7,"item":0},{"n":7,"item":1}]`)}, ""},
		"a stream with a gap":   {job{work: stream}, state{Status: protocol.Completed, Output: json.RawMessage(`[{"n":7,"item":1}]`)}, "another result"},
		"the result of another": {job{work: plain}, state{Status: protocol.Completed, Output: json.RawMessage(`{"n":8,"pad":"xx"}`)}, "another result"},
		"no result":             {job{work: plain}, state{Status: protocol.Completed}, "another result"},
		"no end":                {job{work: plain}, state{Status: protocol.InQueue}, "no end of its own"},
		"out of time":           {job{work: plain, runs: 3}, state{Status: protocol.TimedOut}, "no end of its own"},
		"failed as meant":       {job{work: work{N: 7, Fails: true}}, state{Status: protocol.Failed, Error: json.RawMessage(`"meant to fail: 7"`)}, ""},
		"did not fail as meant": {job{work: work{N: 7, Fails: true}}, state{Status: protocol.Completed, Output: json.RawMessage(`{"n":7,"pad":""}`)}, "meant to fail"},
		"killed":                {job{work: plain, runs: 1}, state{Status: protocol.Failed, Error: json.RawMessage(killed)}, ""},
		"killed, but never run": {job{work: plain}, state{Status: protocol.Failed, Error: json.RawMessage(killed)}, "no good reason"},
		"given up":              {job{work: plain, runs: 9}, state{Status: protocol.Failed, Error: json.RawMessage(`"job timed out after 5 retries"`)}, "no good reason"},
	} {
		t.Run(name, func(t *testing.T) {
			err := row.job.judge(row.state)
			if row.wrong == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.wrong)
		})
	}
}
