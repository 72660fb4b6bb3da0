package test

import (
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// tools skips a test whose programs are not installed.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			missing(t, "no %s in PATH", name)
		}
	}
}

// Programs without any SDK are workers: they find the worker API where they would find the platform's.
func TestRunOfProgramsWithoutAnSDK(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		tools                     []string
		program                   []string
		input, output, bad, error string
	}{
		"shell": {
			tools: []string{"bash", "curl", "jq"}, program: []string{"bash", handler(t, "worker.sh")},
			input: `{"name":"Ada"}`, output: `{"hello":"Ada"}`, bad: `{}`, error: "no name given",
		},
		"JavaScript": {
			tools: []string{"node"}, program: []string{"node", handler(t, "worker.mjs")},
			input: `{"text":"quiet"}`, output: `{"text":"QUIET"}`, bad: `{}`, error: "no text given",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools(t, row.tools...)
			w := runCommand(t, apidouble.New(t), nil, append([]string{"--"}, row.program...)...)
			w.Offer(`{"id":"j1","input":`+row.input+`}`, `{"id":"j2","input":`+row.bad+`}`)
			require.JSONEq(t, row.output, string(w.result(t, "j1").Output))
			require.Equal(t, row.error, w.result(t, "j2").errorText(t))
			w.signal(t, syscall.SIGTERM)
			require.Zero(t, w.wait(t), w.stderr)
		})
	}
}

// A start script may bring up a server first and start Python then; when the worker ends, all of it does.
func TestRunOfAStartScript(t *testing.T) {
	t.Parallel()
	tools(t, "bash", "curl")
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := freeAddress(t)
			_, port, err := net.SplitHostPort(address)
			require.NoError(t, err)
			args := append(append([]string{"--ready", "tcp:" + address}, door...), "--", "bash", handler(t, "start.sh"), python(t), handler(t, "context.py"), port)
			w := runCommand(t, apidouble.New(t), nil, args...)
			w.Offer(`{"id":"j1","input":{}}`)
			require.Equal(t, "w1", decode[struct{ Worker string }](t, w.result(t, "j1").Output).Worker)
			require.Contains(t, w.stdout.String(), "server is up")

			w.signal(t, syscall.SIGTERM)
			require.Zero(t, w.wait(t), w.stderr)
			_, err = net.Dial("tcp", address)
			require.Error(t, err, "the server has outlived the worker")
		})
	}
}

// freeAddress is one of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// --hide-key keeps both keys from the program, and the worker goes on using its own.
func TestRunHidesTheKeys(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		flags []string
		seen  string
	}{
		"as it is": {nil, "platform-key,own-key"},
		"hidden":   {[]string{"--hide-key"}, "none,none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := `import os, runpod
see = lambda name: os.environ.get(name, "none")
runpod.serverless.start({"handler": lambda job: see("RUNPOD_AI_API_KEY") + "," + see("RUNPOD_API_KEY")})`
			w := runCommand(t, apidouble.New(t), []string{"RUNPOD_API_KEY=own-key"}, append(row.flags, "--", python(t), "-c", look)...)
			w.Offer(apidouble.Job("j1"))
			require.Equal(t, strconv.Quote(row.seen), string(w.result(t, "j1").Output))
			require.Equal(t, platformKey, w.results("j1")[0].Header.Get("Authorization"))
		})
	}
}

// The Hub's test runner sets neither key nor heartbeat nor stream, and its templates hold no question mark.
func TestRunWithWhatTheHubSets(t *testing.T) {
	t.Parallel()
	d := apidouble.New(t)
	env := []string{
		"RUNPOD_WEBHOOK_GET_JOB=" + d.URL + "/v2/IDE/job-take/$RUNPOD_POD_ID",
		"RUNPOD_WEBHOOK_POST_OUTPUT=" + d.URL + "/v2/IDE/job-done/$RUNPOD_POD_ID/$ID?gpu=$RUNPOD_GPU_TYPE_ID",
		"RUNPOD_TEST=true", "RUNPOD_LOG_LEVEL=INFO", "RUNPOD_SKIP_FITNESS_CHECKS=true",
	}
	for _, file := range []string{"async.py", "generator.py"} {
		args := []string{binary(t), "run", "--return-aggregate-stream", "--", python(t), "-u", handler(t, file)}
		w := &worker{process: start(t, command{args: args, env: env, dir: t.TempDir()}), API: d}
		w.Offer(`{"id":"` + file + `","input":{"items":["a","b"]}}`)
		require.Contains(t, string(w.result(t, file).Output), `"a","b"`)
		w.signal(t, syscall.SIGTERM)
		require.Zero(t, w.wait(t), w.stderr)
	}
	require.Empty(t, d.Calls(apidouble.Ping))
	require.Empty(t, d.Calls(apidouble.Stream))
	for _, post := range d.Calls(apidouble.Done) {
		require.Empty(t, post.Header.Get("Authorization"))
	}
}
