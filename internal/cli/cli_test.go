package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// invocation runs Main as a test would type it.
type invocation struct {
	env            map[string]string
	stdin          string
	signals        chan os.Signal
	stdout, stderr buffer
}

func (i *invocation) run(args ...string) int {
	return Main(Process{
		Args:    append([]string{"runpodctl-worker"}, args...),
		Lookup:  func(name string) (string, bool) { v, ok := i.env[name]; return v, ok },
		Environ: os.Environ,
		Stdin:   strings.NewReader(i.stdin),
		Stdout:  &i.stdout, Stderr: &i.stderr,
		Signals: i.signals,
		Exit:    func(int) { panic("the third signal") },
	})
}

func TestMain_Usage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)

	tests := []struct {
		name string
		args []string
		env  map[string]string
		code int
		line string // what the one line on stderr says
		ends bool   // by a signal, should it start all the same
	}{
		{name: "unknown flag", args: []string{"serve", "--no-such-flag"}, code: 2, line: "unknown flag --no-such-flag"},
		{name: "unknown flag before the command", args: []string{"--no-such-flag", "serve"}, code: 2, line: "unknown flag --no-such-flag"},
		{name: "a number that is none", args: []string{"serve", "--port", "x"}, code: 2, line: `invalid value "x" for flag --port: want a whole number`},
		{name: "a port out of range", args: []string{"serve", "--port", "70000"}, code: 2, line: "--port 70000"},
		{name: "a time without a unit", args: []string{"serve", "--lease", "40"}, code: 2, line: `invalid value "40" for flag --lease: want a time with its unit`},
		{name: "fewer retries than none", args: []string{"serve", "--max-retries", "-5"}, code: 2, line: "--max-retries -5"},
		{name: "no such interpreter", args: []string{"serve", "--handler", "h.py", "--python", "/no/python"}, code: 2, line: "--python /no/python: no such file or directory"},
		{name: "no such interpreter in PATH", args: []string{"serve", "--handler", "h.py", "--python", "nopython"}, code: 2, line: "--python nopython: executable file not found in $PATH"},
		{name: "no such program", args: []string{"run", "--", "./nofile"}, env: map[string]string{"RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:1/job-take/$ID?", "RUNPOD_WEBHOOK_POST_OUTPUT": "http://127.0.0.1:1/job-done/$ID?"}, code: 2, line: "./nofile: no such file or directory"},
		{name: "a word for a number in the config file", args: []string{"serve", "--config", "word.yaml"}, code: 2, line: "concurrency: four: want a whole number"},
		{name: "a list for one value in the config file", args: []string{"serve", "--config", "list.yaml"}, code: 2, line: "concurrency: want one value, not a list"},
		{name: "gaps that are no times", args: []string{"serve", "--webhook-gaps", "5s,soon"}, code: 2, line: `--webhook-gaps: "soon" is not a time`},
		{name: "rate limits of another kind", args: []string{"serve", "--rate-limits", "strict"}, code: 2, line: "--rate-limits strict: want off or hosted"},
		{name: "a switch that is none", args: []string{"serve", "--disputed", "tll=delete"}, code: 2, line: `--disputed: "tll" is none of empty-input,`},
		{name: "a size that is none", args: []string{"serve", "--max-run-body", "much"}, code: 2, line: "--max-run-body much: want a size such as 10MiB"},
		{name: "a body of nothing", args: []string{"serve", "--max-chunk", "0"}, code: 2, line: "--max-chunk 0: want a size such as 1MiB"},
		{name: "no such faults", args: []string{"serve", "--faults", "gone.yaml"}, code: 2, line: "--faults: gone.yaml: no such file"},
		{name: "no such checks", args: []string{"doctor", "--checks", "gone.yaml"}, code: 2, line: "--checks: gone.yaml: no such file"},
		{name: "a probe that is none", args: []string{"run", "--handler", "echo", "--ready", "foo"}, env: map[string]string{"RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:1/job-take/$ID?", "RUNPOD_WEBHOOK_POST_OUTPUT": "http://127.0.0.1:1/job-done/$ID?"}, code: 2, line: `--ready "foo": want http://HOST/PATH`},
		{name: "two forms of one flag", args: []string{"serve", "--rp_api_port", "1", "--port", "2"}, code: 2, line: "--rp_api_port and --port are the same flag: give one"},
		{name: "faults that make no sense", args: []string{"serve", "--faults", "faults.yaml"}, code: 2, line: `--faults faults.yaml: rules[0].status: want 200 to 599, not 42`},
		{name: "faults that are no YAML", args: []string{"serve", "--faults", "broken.yaml"}, code: 2, line: "--faults broken.yaml: yaml: "},
		{name: "no concurrency", args: []string{"serve", "--concurrency", "0"}, code: 2, line: "--concurrency 0: want 1 to 1024"},
		{name: "a stray argument", args: []string{"serve", "handler.py"}, code: 2, line: "did you mean --handler handler.py?"},
		{name: "another stray argument", args: []string{"serve", "python"}, code: 2, line: `unexpected argument "python"; a program of your own goes after --`},
		{name: "an unknown command", args: []string{"fly"}, code: 2, line: `unknown command "fly"`},
		{name: "the help command is none", args: []string{"help"}, code: 2, line: `unknown command "help"`},
		{name: "a missing handler", args: []string{"serve", "--handler", "gone.py"}, code: 2, line: "gone.py: no such file"},
		{name: "a port that is taken", args: []string{"serve", "--handler", "echo", "--host", "127.0.0.1", "--port", port}, code: 1, line: "port " + port + " on 127.0.0.1 is taken"},
		{name: "a journal for one test job", args: []string{"run", "--handler", "echo", "--test_input", `{"input":1}`, "--state-dir", "d"}, code: 2, line: "--test_input runs one job and ends; --state-dir makes no sense beside it"},
		{name: "open to the network without a key", args: []string{"serve", "--handler", "echo", "--host", "0.0.0.0", "--port", "0"}, code: 2, line: "RUNPODCTL_WORKER_API_KEY", ends: true},
		{name: "open with a key for workers only", args: []string{"serve", "--handler", "echo", "--host", "0.0.0.0", "--port", "0"}, env: map[string]string{"RUNPODCTL_WORKER_WORKER_KEY": "k"}, code: 2, line: "RUNPODCTL_WORKER_API_KEY", ends: true},
		{name: "an origin with a path", args: []string{"serve", "--handler", "echo", "--cors", "https://a.b/c"}, code: 2, line: `--cors: "https://a.b/c" is not an origin`},
		{name: "an origin without a scheme", args: []string{"serve", "--handler", "echo", "--cors", "a.b"}, code: 2, line: `--cors: "a.b" is not an origin`},
		{name: "an empty key file", args: []string{"serve", "--handler", "echo", "--worker-key-file", "empty"}, code: 2, line: "--worker-key-file empty: is empty"},
		{name: "a job that is not JSON", args: []string{"serve", "--handler", "echo", "--test_input", "{"}, code: 2, line: "--test_input is not JSON"},
		{name: "a job without input", args: []string{"serve", "--handler", "echo", "--test_input", `{"inptu":{}}`}, code: 2, line: `the job has no "input"`},
		{name: "a job that is a list", args: []string{"serve", "--handler", "echo", "--test_input", `[]`}, code: 2, line: "want a JSON object"},
		{name: "a test job without a handler", args: []string{"serve", "--test_input", `{"input":1}`}, code: 2, line: "no handler found"},
		{name: "an expected output without a job", args: []string{"serve", "--handler", "echo", "--test_output", "1"}, code: 2, line: "--test_output goes with --test_input"},
		{name: "LE-14 run without a platform", args: []string{"run", "--handler", "echo"}, code: 2, line: "--test_input or put a test_input.json into this folder; for a local endpoint use `runpodctl-worker serve`"},
		{name: "run with nowhere to post to", args: []string{"run", "--handler", "echo"}, env: map[string]string{"RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:1/job-take/$ID?"}, code: 2, line: "RUNPOD_WEBHOOK_POST_OUTPUT is not"},
		{name: "a variable that makes no sense", args: []string{"run", "--handler", "echo"}, env: map[string]string{"RUNPOD_PING_INTERVAL": "soon"}, code: 2, line: `RUNPOD_PING_INTERVAL="soon"`},
		{name: "a config file that is not there", args: []string{"serve", "--config", "gone.yaml"}, code: 2, line: "--config: gone.yaml: no such file"},
		{name: "an unknown key in the config file", args: []string{"serve", "--config", "bad.yaml"}, code: 2, line: `unknown key "colour"`},
		{name: "a cache without an action", args: []string{"cache"}, code: 2, line: "cache without an action: want hydrate, sync, status, verify or prune"},
		{name: "a cache with another action", args: []string{"cache", "heat", "d", "--namespace", "n"}, code: 2, line: "cache heat: want hydrate, sync, status, verify or prune"},
		{name: "a cache of nothing", args: []string{"cache", "hydrate", "--namespace", "n"}, code: 2, line: "cache hydrate: name the directories"},
		{name: "a cache without a name", args: []string{"cache", "sync", "d", "--volume", "."}, code: 2, line: "the mirror has no name: give --namespace or set RUNPOD_ENDPOINT_ID"},
		{name: "a cache with a bad name", args: []string{"cache", "sync", "d", "--namespace", "../n"}, code: 2, line: "../n"},
		{name: "a bad name by the environment", args: []string{"cache", "sync", "d"}, env: map[string]string{"RUNPODCTL_WORKER_CACHE_NAMESPACE": "a/b"}, code: 2, line: "a/b"},
		{name: "a dry run of what is none", args: []string{"cache", "--dry-run", "sync", "d", "--namespace", "n"}, code: 2, line: "--dry-run goes with prune, not with sync"},
		{name: "fewer copiers than none", args: []string{"cache", "sync", "d", "--copiers", "-1", "--namespace", "n"}, code: 2, line: "--copiers -1: want 0 or more"},
		{name: "a cache with an unknown flag", args: []string{"cache", "sync", "d", "--fast"}, code: 2, line: "unknown flag --fast; see runpodctl-worker cache --help"},
		{name: "a cache with a time that is over", args: []string{"cache", "verify", "--timeout", "-1s"}, code: 2, line: "--timeout -1s: want no negative time"},
		{name: "a cache that may take less than no time", args: []string{"run", "--handler", "echo", "--cache-timeout", "-1s"}, env: map[string]string{"RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:1/job-take/$ID?", "RUNPOD_WEBHOOK_POST_OUTPUT": "http://127.0.0.1:1/job-done/$ID?"}, code: 2, line: "--cache-timeout -1s: want no negative time"},
		{name: "a cache of everything", args: []string{"run", "--handler", "echo", "--cache-dir", "/", "--cache-namespace", "n"}, env: map[string]string{"RUNPOD_WEBHOOK_GET_JOB": "http://127.0.0.1:1/job-take/$ID?", "RUNPOD_WEBHOOK_POST_OUTPUT": "http://127.0.0.1:1/job-done/$ID?"}, code: 2, line: "the root of the file system"},
		{name: "a log level by flag", args: []string{"serve", "--log-level", "LOUD"}, code: 2, line: `--log-level "LOUD"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.WriteFile("h.py", nil, 0o644))
			require.NoError(t, os.WriteFile("word.yaml", []byte("concurrency: four\n"), 0o644))
			require.NoError(t, os.WriteFile("list.yaml", []byte("concurrency: [1, 2]\n"), 0o644))
			require.NoError(t, os.WriteFile("bad.yaml", []byte("colour: red\n"), 0o644))
			require.NoError(t, os.WriteFile("faults.yaml", []byte("rules:\n- status: 42\n"), 0o644))
			require.NoError(t, os.WriteFile("empty", nil, 0o600))
			require.NoError(t, os.WriteFile("broken.yaml", []byte("rules: {"), 0o644))
			i := invocation{env: tt.env, signals: make(chan os.Signal, 1)}
			if tt.ends {
				i.signals <- syscall.SIGTERM
			}
			require.Equal(t, tt.code, i.run(tt.args...), i.stderr.String())
			require.Empty(t, i.stdout.String())
			require.Contains(t, i.stderr.String(), tt.line)
			require.Equal(t, 1, strings.Count(i.stderr.String(), "\n"), "one line: %s", i.stderr.String())
		})
	}
}

func TestMain_HelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"run", "--help"}, {"cache", "--help"}, {"cache", "sync", "--help"}, {}} {
		i := invocation{}
		require.Equal(t, 0, i.run(args...))
		require.Regexp(t, `(?i)usage:`, i.stdout.String())
		for line := range strings.Lines(i.stdout.String()) {
			if !strings.HasPrefix(line, "  runpodctl-worker ") { // an example is to be copied whole
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), helpWidth, line)
			}
		}
		require.Empty(t, i.stderr.String())
	}
	i := invocation{}
	require.Equal(t, 0, i.run("--version"))
	require.Regexp(t, `^runpodctl-worker \d+\.\d+\.\d+\S* \([^)]+\)\n$`, i.stdout.String())
	require.Contains(t, userAgent(), "runpodctl-worker/"+version+" (")
}

func TestTestJob(t *testing.T) {
	tests := []struct {
		name          string
		args          []string
		stdin, output string
		code          int
		stderr        string
	}{
		{name: "JSON text", args: []string{"--test_input", `{"input":{"a":"<é>"}}`}, output: `{"a":"<é>"}`},
		{name: "standard input", args: []string{"--test-input", "-"}, stdin: `{"input":[1,2]}`, output: `[1,2]`},
		{name: "the expected output", args: []string{"--test_input", `{"input":{"a":1}}`, "--test_output", `{"a":1.0}`}, output: `{"a":1}`},
		{name: "another output", args: []string{"--test_input", `{"input":{"a":1}}`, "--test_output", `{"a":2}`}, output: `{"a":1}`, code: 1, stderr: "output.a: want 2, got 1"},
		{name: "flags from a file", args: []string{"--config", "flags.yaml"}, output: `7`},
		{name: "a flag beats the file", args: []string{"--config", "flags.yaml", "--test_input", `{"input":8}`}, output: `8`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			require.NoError(t, os.WriteFile("flags.yaml", []byte("test_input: '{\"input\":7}'\nhandler: echo\n"), 0o644))
			i := invocation{stdin: tt.stdin}
			require.Equal(t, tt.code, i.run(append([]string{"serve", "--handler", "echo"}, tt.args...)...), i.stderr.String())
			require.Contains(t, i.stderr.String(), tt.stderr)

			var job map[string]json.RawMessage
			dec := json.NewDecoder(strings.NewReader(i.stdout.String()))
			require.NoError(t, dec.Decode(&job))
			require.ErrorIs(t, dec.Decode(&job), io.EOF, "stdout is one document")
			require.Equal(t, tt.output, string(job["output"]))
			require.Equal(t, `"COMPLETED"`, string(job["status"]))
		})
	}
}

func TestServe_EndsAtASignal(t *testing.T) {
	i := invocation{signals: make(chan os.Signal, 1)}
	i.signals <- syscall.SIGTERM
	require.Equal(t, 0, i.run("serve", "--handler", "echo", "--port", "0", "--stop-linger", "1ms"))
	require.Contains(t, i.stderr.String(), "http://localhost:")
}

// The built-in worker has the workers' key, and so has one that sources --print-env.
func TestServe_WorkerKey(t *testing.T) {
	i := invocation{signals: make(chan os.Signal, 1), env: map[string]string{"RUNPODCTL_WORKER_API_KEY": "c", "RUNPODCTL_WORKER_WORKER_KEY": "w"}}
	i.signals <- syscall.SIGTERM
	require.Equal(t, 0, i.run("serve", "--handler", "echo", "--port", "0", "--stop-linger", "1ms", "--print-env", "--host", "0.0.0.0"))
	require.Contains(t, i.stdout.String(), "export RUNPOD_AI_API_KEY='w'\n")
	require.Contains(t, i.stderr.String(), "listening beyond this machine on 0.0.0.0")
	require.NotContains(t, i.stderr.String(), "401")
}

func TestParseOrigin(t *testing.T) {
	for text, want := range map[string]string{
		"*":                      "*",
		"https://app.example":    "https://app.example",
		"https://App.Example/":   "https://app.example",
		"https://a.com:443":      "https://a.com",
		"https://a.com:443/":     "https://a.com",
		"http://a.com:80":        "http://a.com",
		"http://a.com:443":       "http://a.com:443",
		"https://a.com:8443":     "https://a.com:8443",
		"https://a.com:":         "https://a.com",
		"http://[::1]:80":        "http://[::1]",
		"http://[::1]":           "http://[::1]",
		"chrome-extension://abc": "chrome-extension://abc",
		"https://:443":           "", "https://*.a.com": "", "https://a.com:port": "", "https://u@a.com": "", "null": "", "": "",
	} {
		got, err := parseOrigin(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == "", err != nil, text)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1000": 1000, "7B": 7, "2kB": 2000, "20MB": 20_000_000, "10MiB": 10 << 20, "3 KiB": 3 << 10, "1GiB": 1 << 30, "2GB": 2_000_000_000,
		"": -1, "-1": -1, "1.5MB": -1, "MB": -1, "10mb": -1, "99999999999GiB": -1, "0x10": -1,
	} {
		n, err := parseSize(text)
		require.Equal(t, want < 0, err != nil, text)
		require.Equal(t, max(want, 0), n, text)
	}
}
