package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/test/proctree"
)

// The cases here and in the other cases_… files come from what users reported in public; the letters are
// those of the reports.

// LE-01: a job runs by itself, once, and asking for its status changes nothing.
func TestLE01RunNeedsNoPolling(t *testing.T) {
	t.Parallel()
	server := serveHandler(t, "count.py")
	file := filepath.Join(t.TempDir(), "starts")
	id := server.run(`{"file":` + strconv.Quote(file) + `,"tag":"x","seconds":1}`)
	eventually(t, func() bool { return lineCount(file) == 1 }, "the job did not start by itself")

	order := map[string]int{"IN_QUEUE": 0, "IN_PROGRESS": 1, "COMPLETED": 2}
	last := "IN_QUEUE"
	for range 5 {
		status := server.status(id).Status
		require.GreaterOrEqual(t, order[status], order[last], "%s after %s", status, last)
		last = status
	}
	require.Equal(t, "COMPLETED", server.await(id).Status)
	require.Equal(t, 1, lineCount(file))
}

// LE-02: a generator that fails before its first item is a failed job, not a server error.
func TestLE02GeneratorFailsAtOnce(t *testing.T) {
	t.Parallel()
	server := serveHandler(t, "boom.py")
	for name, get := range map[string]func() job{
		"runsync":        func() job { return server.runSync(`{}`) },
		"run and status": func() job { return server.await(server.run(`{}`)) },
		"run and stream": func() job {
			id := server.run(`{}`)
			require.Empty(t, server.streamAll(id).Stream)
			return server.status(id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := get()
			require.NotEmpty(t, j.ID)
			require.Equal(t, "FAILED", j.Status)
			require.Contains(t, j.Error, "boom")
			require.Empty(t, j.Output)
		})
	}
	require.True(t, server.alive())
}

// falsy are the JSON values that are nothing to a careless reader. null may also be left out.
var falsy = []string{`{}`, `[]`, `""`, `0`, `false`, `null`}

func requireValue(t *testing.T, want string, got json.RawMessage) {
	t.Helper()
	if want == "null" && got == nil {
		return
	}
	require.Equal(t, want, string(got))
}

// LE-03: any JSON value is a result.
func TestLE03FalsyResults(t *testing.T) {
	t.Parallel()
	server := serveHandler(t, "value.py")
	for _, value := range falsy {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			input := `{"value":` + value + `}`
			p := testInput(t, "value.py", `{"input":`+input+`}`)
			require.Zero(t, p.wait(t), p.stderr)
			for _, j := range []job{server.runSync(input), server.await(server.run(input)), p.document(t).job} {
				require.Equal(t, "COMPLETED", j.Status)
				requireValue(t, value, j.Output)
			}
		})
	}
}

// LE-08: more than one job at a time works for both kinds of function.
func TestLE08Concurrency(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		file string
		args []string
	}{
		"async": {"meet_async.py", []string{"--concurrency", "4"}},
		"sync":  {"meet.py", []string{"--concurrency", "4", "--sync-threads", "4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serveHandler(t, row.file, row.args...)
			// Each of the four ends only when it sees the other three run.
			input := `{"jobs":4,"dir":` + strconv.Quote(t.TempDir()) + `}`
			ids := make([]string, 0, 5)
			for range 4 {
				ids = append(ids, server.run(input))
			}
			for _, id := range append(ids, server.run(input)) {
				j := server.await(id)
				require.Equal(t, "COMPLETED", j.Status, j.Error)
			}
			require.True(t, server.alive())
		})
	}
}

// LE-11: refresh_worker means a fresh process here too, and costs neither jobs nor memory.
func TestLE11Refresh(t *testing.T) {
	t.Parallel()
	const jobs, warm = 20, 5
	server := serveHandler(t, "pid.py")
	pids := map[int]bool{}
	var before int64
	for i := range jobs {
		j := server.runSync(`{"n":1}`)
		require.Equal(t, "COMPLETED", j.Status, j.Error)
		pids[decode[struct{ PID int }](t, j.Output).PID] = true
		if i == warm {
			before = residentMemory(t, server.cmd.Process.Pid)
		}
	}
	require.Len(t, pids, jobs)
	require.Less(t, residentMemory(t, server.cmd.Process.Pid), before*3/2)
}

// residentMemory is that of the process alone.
func residentMemory(t *testing.T, pid int) int64 {
	t.Helper()
	m, err := proctree.Alone(pid)
	require.NoError(t, err)
	return m.RSS
}

// LE-13: what a generator yields can be read while it runs.
func TestLE13StreamIsLive(t *testing.T) {
	t.Parallel()
	server := serveHandler(t, "gate_generator.py")
	gate := filepath.Join(t.TempDir(), "gate")
	id := server.run(`{"items":["1","2","3","4","5"],"gate":` + strconv.Quote(gate) + `}`)

	var early []string
	for limit := time.Now().Add(patience); len(early) == 0; {
		require.True(t, time.Now().Before(limit), "no item while the generator waits")
		j := server.stream(id)
		require.False(t, j.over(), "ended as %s with its gate closed", j.Status)
		early = j.items(t)
	}
	require.Equal(t, []string{"1"}, early)

	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	rest := server.streamAll(id)
	require.Equal(t, []string{"2", "3", "4", "5"}, rest.items(t))
	require.Equal(t, "COMPLETED", rest.Status)
	require.Empty(t, server.stream(id).Stream, "items are delivered once")
}

// LE-14: a worker without a platform says what else can be done.
func TestLE14RunWithoutPlatform(t *testing.T) {
	t.Parallel()
	p := runToEnd(t, command{
		args: []string{binary(t), "run", "--python", python(t), "--handler", handler(t, "sync.py")},
		dir:  t.TempDir(),
	})
	require.Equal(t, 2, p.wait(t))
	require.Len(t, p.stderr.lines(), 1, p.stderr)
	for _, way := range []string{"--test_input", ".json", "serve"} {
		require.Contains(t, p.stderr.String(), way)
	}
}

// LE-15: --test_input reads a generator to its end, or to its failure.
func TestLE15TestInputOfGenerators(t *testing.T) {
	t.Parallel()
	p := testInput(t, "boom.py", `{"input":{"items":["1","2"]}}`)
	require.Equal(t, 1, p.wait(t))
	j := p.document(t)
	require.Equal(t, "FAILED", j.Status)
	require.Contains(t, j.Error, "boom")
	require.Equal(t, []string{"1", "2"}, j.Items)
}
