package test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// A realtime worker takes jobs from requests to its own port. It runs no checks, as ever, and has a heartbeat.
func TestRunOfARealtimeWorker(t *testing.T) {
	t.Parallel()
	address, g := freeAddress(t), newGates(t)
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	env := with(checked, insatiable, "RUNPOD_REALTIME_PORT="+port, "RUNPOD_PING_INTERVAL=1000")
	w := runThrough(t, doors["shim"], env, "gate.py")
	eventually(t, func() bool { return strings.Contains(w.stderr.String(), "/ep/realtime") }, "it does not listen")
	require.NotContains(t, w.stderr.String(), "fitness")

	type answer struct {
		status int
		body   string
		err    error
	}
	post := func(job string) answer {
		resp, err := httpClient.Post("http://"+address+"/ep/realtime", "application/json", strings.NewReader(job))
		if err != nil {
			return answer{err: err}
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return answer{resp.StatusCode, string(body), err}
	}
	answers := make(chan answer, 1)
	go func() { answers <- post(g.job("r1")) }()
	eventually(t, func() bool {
		pings := w.Calls(apidouble.Ping)
		return len(pings) > 0 && pings[len(pings)-1].Query.Get("job_id") == "r1"
	}, "no heartbeat names the job")
	g.open("r1")
	got := <-answers
	require.NoError(t, got.err)
	require.Equal(t, http.StatusOK, got.status)
	require.JSONEq(t, `{"output":"r1"}`, got.body)

	refused := post(`{"id":"r2"}`)
	require.NoError(t, refused.err)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Empty(t, w.Calls(apidouble.Take))
}
